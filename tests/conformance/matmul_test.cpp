// matmul and quantize_rows: every dtype on both of its paths, tile edges of every backend in each
// of R, N and K.
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "ops/activation.hpp"

namespace loom::core::test {
namespace {

struct Extents {
  int64_t r, n, k;
};

// Block edges in k with few shapes of the output, then tile edges in n, then in r.
std::vector<Extents> matmul_extents() {
  std::vector<Extents> all = {{0, 5, 33}, {3, 0, 33}, {33, 130, 800}, {12, 64, 512}};
  for (int64_t k : {0, 1, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 513, 800}) {
    for (const auto& [r, n] : {std::pair<int64_t, int64_t>{1, 17}, {5, 33}, {13, 16}})
      all.push_back({r, n, k});
  }
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 64, 65, 130}) {
    all.push_back({2, n, 40});
    all.push_back({9, n, 288});
  }
  for (int64_t r : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 25, 33}) {
    all.push_back({r, 48, 256});
    all.push_back({r, 17, 65});
  }
  // Float kernels cut many rows and wide outputs into blocks, and share rows of narrow ones.
  for (const Extents& e : {Extents{230, 20, 300}, {15, 600, 300}, {50, 10, 300}}) all.push_back(e);
  return all;
}

// One product; `variant` determines the rest (bias, activation, strides, values).
void conform_product(DType dtype, const Extents& e, bool use_q8, uint64_t variant) {
  const Values kind = std::array{Values::smooth, Values::mixed, Values::wild}[variant % 3];
  const int64_t gap = variant % 2 == 0 ? 0 : 5;
  const Rows x(e.r, e.k, gap, variant, kind);
  const Packed w(dtype, e.n, e.k, variant + 1,
                 kind == Values::smooth ? Values::smooth : Values::mixed);
  const Rows bias(1, e.n, 0, variant + 2, Values::smooth);
  const Q8 q(x.tensor());
  MatmulArgs args;
  args.x = x.tensor();
  args.w = w.tensor();
  if (variant % 4 < 2) args.bias = bias.tensor();
  args.activation = static_cast<Activation>(variant % kActivations);
  args.use_q8 = use_q8;
  if (use_q8) args.q8 = q.rows();
  const std::string what = cat(dtype_name(dtype), use_q8 ? " q8" : " float", ": x [", e.r, ", ",
                               e.k, "], w [", e.n, ", ", e.k, "], variant ", variant);
  expect_same_bits(what, [&](const Runner& run) {
    const Rows y(e.r, e.n, gap);
    MatmulArgs mine = args;
    mine.y = y.tensor();
    run(&Ops::matmul, mine);
    Image image;
    image.add(y.memory());
    return image;
  });
}

}  // namespace

void conform_matmul() {
  uint64_t variant = 0;
  for (const DTypeInfo& info : dtype_table()) {
    for (const Extents& e : matmul_extents()) {
      conform_product(info.dtype, e, false, variant++);
      if (info.integer_path()) conform_product(info.dtype, e, true, variant++);
    }
  }
}

void conform_quantize_rows() {
  uint64_t seed = 0;
  for (int64_t cols : {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257}) {
    for (int64_t rows : {0, 1, 2, 5, 13}) {
      for (Values kind : {Values::smooth, Values::mixed, Values::wild}) {
        const Rows x(rows, cols, static_cast<int64_t>(seed % 3), seed, kind);
        expect_same_bits(cat("x [", rows, ", ", cols, "], seed ", seed), [&](const Runner& run) {
          const Q8 q(rows, cols);
          run(&Ops::quantize_rows, QuantizeRowsArgs{x.tensor(), q.rows()});
          Image image;
          image.add_bytes(q.codes().data(), static_cast<int64_t>(q.codes().size()));
          image.add(q.scales());
          image.add_bytes(q.sums().data(), static_cast<int64_t>(q.sums().size() * 4));
          return image;
        });
        ++seed;
      }
    }
  }
}

// Blocks whose scale is at an edge: subnormal, the smallest that can be inverted, the largest
// float, not finite.
TEST(QuantizeRows, ScalesAtTheEdgesGiveTheSameBits) {
  for (float edge : {1e-45f, 1e-39f, 3.7e-37f, 3.8e-37f, 0x1p-126f, 3.4e38f, __builtin_inff(),
                     __builtin_nanf("")}) {
    Rows x(1, 32);
    for (int64_t i = 0; i < 32; ++i) x.at(0, i) = edge * (static_cast<float>(i) / 31.0f - 0.5f);
    x.at(0, 7) = -edge;
    expect_same_bits(cat("absmax ", edge), [&](const Runner& run) {
      const Q8 q(1, 32);
      run(&Ops::quantize_rows, QuantizeRowsArgs{x.tensor(), q.rows()});
      Image image;
      image.add_bytes(q.codes().data(), 32);
      image.add(q.scales());
      image.add_bytes(q.sums().data(), 8);
      return image;
    });
  }
}

}  // namespace loom::core::test
