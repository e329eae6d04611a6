// Value-wise and row-wise gradients, entmax, and sums over rows: lengths around the 32 virtual
// lanes, the blocks of 4096 and every vector width; strided, in place, empty, with special values.
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/gradients/activation_dx.hpp"

namespace loom::core::test {
namespace {

struct Matrix {
  int64_t rows, cols, gap;
};
constexpr Matrix kMatrices[] = {{0, 5, 0},    {3, 0, 0},    {1, 1, 0},    {1, 15, 0},
                                {2, 16, 1},   {1, 17, 0},   {5, 31, 0},   {5, 32, 3},
                                {13, 33, 2},  {3, 65, 0},   {2, 255, 1},  {2, 256, 0},
                                {33, 257, 1}, {2, 4095, 0}, {1, 4097, 0}, {1, 8200, 0}};

// Runs body(m, seed, kind) over shapes and kinds of values; a seed leaves room for five inputs.
template <class Body>
void each_matrix(Body body) {
  uint64_t seed = 100;
  for (const Matrix& m : kMatrices) {
    for (Values kind : {Values::smooth, Values::mixed, Values::wild}) body(m, seed += 5, kind);
  }
}

std::string name_of(const Matrix& m, Values kind) {
  static constexpr std::string_view kNames[] = {"smooth", "mixed", "wild"};
  return cat("[", m.rows, ", ", m.cols, "] ", kNames[static_cast<int>(kind)], " gap ", m.gap);
}

// Runs op with dx in memory of its own, and over dy.
template <class Args>
void conform_dx(const std::string& what, void (*Ops::*op)(const Args&, const Lane&), Args args,
                const Rows& dy) {
  expect_same_bits(what, [&](const Runner& run) {
    const Rows dx(dy.tensor().rows(), dy.tensor().cols(), 1);
    args.dy = dy.tensor(), args.dx = dx.tensor();
    run(op, args);
    return image_of({&dx});
  });
  expect_same_bits(what + " in place", [&](const Runner& run) {
    const Rows mine = copy_of(dy);
    args.dy = args.dx = mine.tensor();
    run(op, args);
    return image_of({&mine});
  });
}

// A sweep over magnitudes of both signs that covers the branches of the functions.
Rows sweep() {
  std::vector<float> values = make_values(3, 256, Values::wild);
  const bool tame = tame_values();
  for (int exponent = tame ? -120 : -149; exponent <= (tame ? 3 : 127); ++exponent) {
    const float power = __builtin_ldexpf(1.0f, exponent);
    for (float factor : {1.0f, -1.0f, 1.3f, -1.7f}) values.push_back(power * factor);
  }
  for (float edge : {0.625f, 1.0f, 2.0f, 3.0f, 10.0f, 20.0f, 40.0f, 87.33f, 88.73f, 103.9f}) {
    if (tame && edge > 16.0f) break;
    for (float x : {edge, -edge, edge * 1.0000001f, edge * -1.0000001f}) values.push_back(x);
  }
  Rows rows(1, static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) rows.at(0, static_cast<int64_t>(i)) = values[i];
  return rows;
}

void conform_unary_dx_of(const Rows& x, const Rows& dy, const std::string& what) {
  for (int k = 0; k < kUnaryKinds; ++k) {
    const auto kind = static_cast<UnaryKind>(k);
    UnaryDxArgs args;
    args.x = x.tensor(), args.kind = kind;
    conform_dx(cat("kind ", k, " of ", what), &Ops::unary_dx, args, dy);
    if (!has_dx_from_output(kind)) continue;
    args.from_output = true;
    conform_dx(cat("kind ", k, " from the output, ", what), &Ops::unary_dx, args, dy);
  }
}

void conform_gated_dx_of(const Rows& gate, const Rows& up, const Rows& dy, Activation kind) {
  const int64_t rows = gate.tensor().rows(), cols = gate.tensor().cols();
  for (bool in_place : {false, true}) {
    expect_same_bits(cat("activation ", static_cast<int>(kind), " of ", gate.tensor().shape.str(),
                         in_place ? " in place" : ""),
                     [&](const Runner& run) {
                       const Rows my_gate = copy_of(gate), my_dy = copy_of(dy);
                       const Rows dgate(rows, cols, 1), dup(rows, cols, 2);
                       GatedDxArgs args{gate.tensor(),  up.tensor(),  dy.tensor(),
                                        dgate.tensor(), dup.tensor(), kind};
                       if (in_place) {
                         args.gate = args.dgate = my_gate.tensor();
                         args.dy = args.dup = my_dy.tensor();
                       }
                       run(&Ops::gated_dx, args);
                       return image_of({&my_gate, &my_dy, &dgate, &dup});
                     });
  }
}

void conform_norm_dx_of(const Matrix& m, uint64_t seed, Values values, NormDxArgs args,
                        int64_t gammas) {
  const Rows x(m.rows, m.cols, m.gap, seed, values), dy(m.rows, m.cols, 2, seed + 1, values);
  const Rows gamma(1, gammas, 0, seed + 2, Values::smooth);
  args.x = x.tensor();
  if (gammas > 0) args.gamma = vector_of(gamma);
  const std::string what = cat("norm ", static_cast<int>(args.kind), " of ", name_of(m, values),
                               ", ", args.segments, " segments, gamma ", gammas);
  conform_dx(what, &Ops::norm_dx, args, dy);
  expect_same_bits(what + " scaled", [&](const Runner& run) {
    const Rows dx(m.rows, m.cols, 1), scaled(m.rows, m.cols, 3);
    NormDxArgs mine = args;
    mine.dy = dy.tensor(), mine.dx = dx.tensor(), mine.scaled = scaled.tensor();
    run(&Ops::norm_dx, mine);
    return image_of({&dx, &scaled});
  });
}

constexpr float kAlphas[] = {1.5f, 2.0f, 1.25f, 3.0f};

// The reference bisects long rows slowly; one such alpha is enough for them.
bool too_slow(const Matrix& m, float alpha) {
  return m.rows * m.cols > 600 && alpha != 1.5f && alpha != 2.0f && m.cols != 4097;
}

void conform_entmax_of(const Rows& x, const std::string& what, float alpha, float scale) {
  const int64_t rows = x.tensor().rows(), cols = x.tensor().cols();
  for (bool in_place : {false, true}) {
    expect_same_bits(
        cat(what, ", alpha ", alpha, in_place ? " in place" : ""), [&](const Runner& run) {
          const Rows mine = copy_of(x), fresh(rows, cols, 1);
          const Rows& y = in_place ? mine : fresh;
          run(&Ops::entmax,
              EntmaxArgs{in_place ? mine.tensor() : x.tensor(), y.tensor(), scale, alpha});
          return image_of({&y});
        });
  }
}

// Rows of equal, infinite and missing values, which test the order of selection and of maxima.
void conform_entmax_edges(float alpha) {
  constexpr float kInf = __builtin_inff(), kNan = __builtin_nanf("");
  for (int64_t cols : {1, 2, 17, 33, 40}) {
    for (const auto& [first, rest] : {std::pair{0.5f, 0.5f},
                                      {-kInf, -kInf},
                                      {2.0f, -kInf},
                                      {kNan, 1.0f},
                                      {kInf, 1.0f},
                                      {-kInf, kNan},
                                      {-0.0f, 0.0f},
                                      {3.4e38f, -3.4e38f}}) {
      for (int64_t at : {int64_t{0}, cols - 1}) {
        Rows x(1, cols);
        for (int64_t c = 0; c < cols; ++c) x.at(0, c) = c == at ? first : rest;
        conform_entmax_of(x, cat(first, " at ", at, ", else ", rest, " x ", cols), alpha, 1.0f);
      }
    }
  }
}

}  // namespace

void conform_reduce_cols() {
  uint64_t seed = 10;
  for (int64_t rows : {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 255, 256, 257, 4095, 4096, 4097}) {
    for (int64_t cols : {0, 1, 7, 16, 17, 33, 65}) {
      if (rows > 1000 && cols > 17) continue;
      const Values kind = values_of(++seed);
      const Rows x(rows, cols, static_cast<int64_t>(seed % 2) * 3, seed, kind);
      for (bool accumulate : {false, true}) {
        expect_same_bits(
            cat(name_of({rows, cols, 0}, kind), accumulate ? " added" : ""),
            [&](const Runner& run) {
              const Rows y = filled(1, cols, 0);
              run(&Ops::reduce_cols, ReduceColsArgs{x.tensor(), vector_of(y), accumulate});
              return image_of({&y});
            });
      }
    }
  }
}

void conform_scatter_add_rows() {
  uint64_t seed = 30;
  for (int64_t cols : {0, 1, 15, 16, 17, 33, 257}) {
    for (int64_t rows : {0, 1, 2, 5, 40}) {
      ++seed;
      const Rows dy(rows, cols, 1, seed, values_of(seed));
      Ids ids(rows, 1);
      for (size_t i = 0; i < ids.values().size(); ++i) {
        ids.values()[i] = static_cast<int32_t>(Rng(seed, 5).bits(i) % 7);
      }
      Tensor id_vector = ids.tensor();
      id_vector.shape = Shape{rows};
      for (int64_t skip : {-1, 3}) {
        expect_same_bits(cat(rows, " rows of ", cols, ", skip ", skip), [&](const Runner& run) {
          const Rows table = filled(7, cols, 2);
          run(&Ops::scatter_add_rows,
              ScatterAddRowsArgs{dy.tensor(), id_vector, table.tensor(), skip});
          return image_of({&table});
        });
      }
    }
  }
}

void conform_unary_dx() {
  each_matrix([](const Matrix& m, uint64_t seed, Values kind) {
    if (m.rows * m.cols > 600) return;
    const Rows x(m.rows, m.cols, m.gap, seed, kind), dy(m.rows, m.cols, 2, seed + 1, kind);
    conform_unary_dx_of(x, dy, name_of(m, kind));
  });
  const Rows x = sweep();
  conform_unary_dx_of(x, Rows(1, x.tensor().cols(), 0, 7, Values::smooth), "a sweep");
}

void conform_gated_dx() {
  for (int k = 0; k < kActivations; ++k) {
    each_matrix([&](const Matrix& m, uint64_t seed, Values kind) {
      if (m.rows * m.cols > 600) return;
      conform_gated_dx_of(Rows(m.rows, m.cols, m.gap, seed, kind),
                          Rows(m.rows, m.cols, 2, seed + 1, kind),
                          Rows(m.rows, m.cols, 0, seed + 2, kind), static_cast<Activation>(k));
    });
  }
}

void conform_norm_dx() {
  for (NormKind kind : {NormKind::rms, NormKind::layer}) {
    NormDxArgs args;
    args.kind = kind;
    args.eps = kind == NormKind::rms ? 1e-6f : 1e-5f;
    each_matrix([&](const Matrix& m, uint64_t seed, Values values) {
      args.segments = 1;
      conform_norm_dx_of(m, seed, values, args, seed % 2 == 0 ? 0 : m.cols);
    });
    args.segments = 3;
    for (int64_t width : {0, 1, 16, 33, 64}) {
      for (int64_t gammas : {width, 3 * width}) {
        conform_norm_dx_of({5, 3 * width, 1}, 900 + static_cast<uint64_t>(width), Values::smooth,
                           args, gammas);
      }
    }
  }
}

void conform_softmax_dx() {
  each_matrix([](const Matrix& m, uint64_t seed, Values kind) {
    const Rows y(m.rows, m.cols, m.gap, seed, kind), dy(m.rows, m.cols, 2, seed + 1, kind);
    conform_dx(name_of(m, kind), &Ops::softmax_dx,
               SoftmaxDxArgs{y.tensor(), {}, {}, seed % 2 == 0 ? 1.0f : 0.125f}, dy);
  });
}

void conform_entmax() {
  for (float alpha : kAlphas) {
    each_matrix([&](const Matrix& m, uint64_t seed, Values kind) {
      if (too_slow(m, alpha)) return;
      const Rows x(m.rows, m.cols, m.gap, seed, kind);
      conform_entmax_of(x, name_of(m, kind), alpha, seed % 2 == 0 ? 1.0f : 0.125f);
    });
    conform_entmax_edges(alpha);
  }
}

void conform_entmax_dx() {
  for (float alpha : kAlphas) {
    each_matrix([&](const Matrix& m, uint64_t seed, Values kind) {
      // Not an output of entmax, but it covers every branch of the formula.
      const Rows y(m.rows, m.cols, m.gap, seed, kind), dy(m.rows, m.cols, 2, seed + 1, kind);
      conform_dx(cat(name_of(m, kind), ", alpha ", alpha), &Ops::entmax_dx,
                 EntmaxDxArgs{y.tensor(), {}, {}, seed % 2 == 0 ? 1.0f : 0.125f, alpha}, dy);
    });
    Rows zeros(2, 33);
    for (int64_t i = 0; i < 66; ++i) zeros.at(i / 33, i % 33) = 0.0f;
    conform_dx(cat("zeros, alpha ", alpha), &Ops::entmax_dx,
               EntmaxDxArgs{zeros.tensor(), {}, {}, 1.0f, alpha},
               Rows(2, 33, 0, 5, Values::smooth));
  }
}

}  // namespace loom::core::test
