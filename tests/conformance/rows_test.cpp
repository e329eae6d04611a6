// Row-wise ops: norm, softmax, reduce, argmax, topk, rope. Lengths around the 32 virtual lanes, the
// blocks of 4096 and every vector width; strided, in place, with zero rows and with zero columns.
#include "base/text.hpp"
#include "conformance/support.hpp"

namespace loom::core::test {
namespace {

const std::vector<int64_t>& lengths() {
  static const std::vector<int64_t> all = {1,  2,  7,   8,   15,  16,   17,   31,   32,  33,
                                           47, 48, 255, 256, 257, 4095, 4096, 4097, 8200};
  return all;
}

// Row counts for a length: a few of the long ones, more of the short.
std::vector<int64_t> row_counts(int64_t cols) {
  if (cols > 1000) return {1, 2};
  return {0, 1, 2, 5, 13, 33};
}

std::string shape_name(const Rows& x, Values kind) {
  static constexpr std::string_view kNames[] = {"smooth", "mixed", "wild"};
  return cat(x.tensor().shape.str(), " ", kNames[static_cast<int>(kind)], " stride ",
             x.tensor().row_stride);
}

// Runs body(x, kind) over the shapes and kinds of values that row ops must support.
template <class Body>
void each_matrix(Body body) {
  uint64_t seed = 100;
  for (int64_t cols : lengths()) {
    for (int64_t rows : row_counts(cols)) {
      for (Values kind : {Values::smooth, Values::mixed, Values::wild}) {
        ++seed;
        body(Rows(rows, cols, seed % 2 == 0 ? 0 : 3, seed, kind), kind);
      }
    }
  }
}

// Runs op with x and a fresh y of the same shape (another stride), and in place.
template <class Args>
void conform_rows(const std::string& what, const Rows& x,
                  void (*Ops::*op)(const Args&, const Lane&), Args args) {
  const int64_t rows = x.tensor().rows(), cols = x.tensor().cols();
  expect_same_bits(what, [&](const Runner& run) {
    const Rows y(rows, cols, 2);
    Args mine = args;
    mine.x = x.tensor();
    mine.y = y.tensor();
    run(op, mine);
    Image image;
    image.add(y.memory());
    return image;
  });
  expect_same_bits(what + " in place", [&](const Runner& run) {
    Rows y(rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) y.at(r, c) = x.tensor().f32_row(r)[c];
    }
    Args mine = args;
    mine.x = mine.y = y.tensor();
    run(op, mine);
    Image image;
    image.add(y.memory());
    return image;
  });
}

void conform_norm_of(const Rows& x, Values kind, NormKind norm, int64_t segments, bool parameters,
                     bool per_row) {
  const int64_t cols = x.tensor().cols();
  const int64_t n = per_row ? cols : cols / segments;
  const Rows gamma(1, n, 0, 7, Values::smooth), beta(1, n, 0, 8, Values::smooth);
  NormArgs args;
  args.kind = norm;
  args.segments = segments;
  args.eps = norm == NormKind::rms ? 1e-6f : 1e-5f;
  if (parameters) {
    args.gamma = f32_vector(gamma.tensor().f32(), n);
    if (norm == NormKind::layer) args.beta = f32_vector(beta.tensor().f32(), n);
  }
  const std::string what =
      cat(norm == NormKind::rms ? "rms " : "layer ", shape_name(x, kind), ", ", segments,
          " segments", parameters ? ", gamma" : "", per_row ? " per row" : "");
  conform_rows(what, x, &Ops::norm, args);
}

}  // namespace

void conform_norm() {
  each_matrix([](const Rows& x, Values kind) {
    for (NormKind norm : {NormKind::rms, NormKind::layer}) {
      const bool parameters = x.tensor().rows() != 2;
      conform_norm_of(x, kind, norm, 1, parameters, false);
    }
  });
  uint64_t seed = 900;
  for (int64_t width : {0, 1, 16, 33, 64}) {
    for (bool per_row : {false, true}) {
      for (NormKind norm : {NormKind::rms, NormKind::layer}) {
        conform_norm_of(Rows(5, width * 3, 1, seed++, Values::smooth), Values::smooth, norm, 3,
                        true, per_row);
      }
    }
  }
}

void conform_softmax() {
  each_matrix([](const Rows& x, Values kind) {
    SoftmaxArgs args;
    args.scale = x.tensor().rows() % 2 == 0 ? 1.0f : 0.125f;
    conform_rows(shape_name(x, kind), x, &Ops::softmax, args);
  });
  conform_rows("no columns", Rows(3, 0), &Ops::softmax, SoftmaxArgs{});
  // Rows of only -inf and NaN: whichever the maximum is decides between zeros and NaN.
  for (int64_t cols : {1, 2, 16, 17, 33, 40, 56, 63}) {
    for (int64_t nan_at = -1; nan_at < cols; ++nan_at) {
      Rows x(1, cols);
      for (int64_t c = 0; c < cols; ++c)
        x.at(0, c) = c == nan_at ? __builtin_nanf("") : -__builtin_inff();
      conform_rows(cat("-inf x ", cols, ", NaN at ", nan_at), x, &Ops::softmax, SoftmaxArgs{});
    }
  }
}

void conform_reduce() {
  const auto conform = [](const Rows& x, Values kind) {
    for (ReduceKind reduce :
         {ReduceKind::sum, ReduceKind::mean, ReduceKind::sum_squares, ReduceKind::max}) {
      const std::string what = cat(static_cast<int>(reduce), " of ", shape_name(x, kind));
      expect_same_bits(what, [&](const Runner& run) {
        const Rows y(1, x.tensor().rows());
        run(&Ops::reduce,
            ReduceArgs{x.tensor(), f32_vector(y.tensor().f32(), x.tensor().rows()), reduce});
        Image image;
        image.add(y.memory());
        return image;
      });
    }
  };
  each_matrix(conform);
  conform(Rows(3, 0), Values::smooth);
}

void conform_argmax() {
  each_matrix([](const Rows& x, Values kind) {
    expect_same_bits(shape_name(x, kind), [&](const Runner& run) {
      Ids ids(1, x.tensor().rows());
      run(&Ops::argmax, ArgmaxArgs{x.tensor(), ids.tensor()});
      Image image;
      image.add_bytes(ids.values().data(), x.tensor().rows() * 4);
      return image;
    });
  });
}

void conform_topk() {
  uint64_t seed = 300;
  for (int64_t cols : {1, 2, 16, 33, 257, 4097, 8200}) {
    for (int64_t rows : {0, 1, 2, 5, 13}) {
      for (int64_t k :
           {int64_t{0}, int64_t{1}, std::min<int64_t>(cols, 5), std::min<int64_t>(cols, 40)}) {
        const Rows x(rows, cols, static_cast<int64_t>(seed % 2), seed, Values::wild);
        ++seed;
        expect_same_bits(cat(x.tensor().shape.str(), " top ", k), [&](const Runner& run) {
          const Rows values(rows, k);
          Ids ids(rows, k);
          run(&Ops::topk, TopkArgs{x.tensor(), values.tensor(), ids.tensor()});
          Image image;
          image.add(values.memory());
          image.add_bytes(ids.values().data(), rows * k * 4);
          return image;
        });
      }
    }
  }
}

namespace {

// Runs of `length` rows (0 means one run), rotated forwards or back, into fresh memory and in
// place; `rotary_dim` values of each head (0 means all).
void conform_rope_of(int64_t heads, int64_t width, int64_t rows, int64_t length, uint64_t seed,
                     int64_t rotary_dim = 0) {
  const int64_t first = static_cast<int64_t>(seed % 4) * 3;
  const int64_t positions = first + (length > 0 ? length : rows);
  const Values kind = rows == 2 ? Values::wild : Values::mixed;
  const int64_t half = (rotary_dim > 0 ? rotary_dim : width) / 2;
  const Rows cos(positions, half, 0, seed, Values::smooth), sin(positions, half, 1, seed + 1, kind);
  for (bool inverse : {false, true}) {
    for (bool in_place : {false, true}) {
      expect_same_bits(
          cat(rows, " rows in runs of ", length, " of ", heads, " heads of ", width,
              inverse ? ", back" : "", in_place ? ", in place" : "", ", rotary_dim ", rotary_dim),
          [&](const Runner& run) {
            const Rows x(rows, width * heads, rows == 13 ? 4 : 0, seed + 2, kind);
            const Rows fresh(rows, width * heads, 1);
            const Rows& y = in_place ? x : fresh;
            run(&Ops::rope, RopeArgs{x.tensor(), y.tensor(), cos.tensor(), sin.tensor(), heads,
                                     first, length, inverse, rotary_dim});
            Image image;
            image.add(x.memory());
            image.add(y.memory());
            return image;
          });
    }
  }
}

}  // namespace

void conform_rope() {
  uint64_t seed = 500;
  for (int64_t width : {2, 6, 16, 32, 34, 64, 128}) {
    for (int64_t heads : {1, 3}) {
      for (int64_t rows : {0, 1, 2, 13}) conform_rope_of(heads, width, rows, 0, seed += 3);
      for (int64_t rotary_dim = 2; rotary_dim < width; rotary_dim += 14)
        conform_rope_of(heads, width, 3, 0, seed += 3, rotary_dim);
      for (int64_t length : {1, 3, 5}) conform_rope_of(heads, width, 15, length, seed += 3);
    }
  }
}

}  // namespace loom::core::test
