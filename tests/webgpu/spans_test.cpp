// Types with super-blocks, codes in two planes or zeros per block, in every kernel of their
// products: one row, a row in pieces, few rows, few outputs, small and large tiles, on rows of
// floats and of codes. Sums are compared with those of f64 over the decoded weights.
#include <algorithm>

#include "backend/reference/reference.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

std::vector<DType> span_types() {
  std::vector<DType> types;
  for (const DTypeInfo& info : dtype_table()) {
    if (webgpu::reads_spans(info.dtype)) types.push_back(info.dtype);
  }
  return types;
}

struct Product {
  DType dtype;
  bool use_q8;
  int64_t rows, cols, depth;
};

// x . w^T in f64; for a row of codes with the decoded values.
std::vector<float> expected_product(const Product& p, const Rows& x, const Q8& q, const Tensor& w) {
  const R16 g = r16_geometry(p.dtype, p.cols, p.depth);
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<float> row(at(p.depth)), y(at(p.rows * p.cols));
  for (int64_t n = 0; n < p.cols; ++n) {
    r16_decode(g, w.data, n, 0, p.depth, row.data());
    for (int64_t r = 0; r < p.rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        const int64_t block = r * q.rows().blocks + k / 32;
        const double value =
            p.use_q8 ? double{q.scales()[at(block)]} * q.codes()[at(block * 32 + k % 32)]
                     : double{x.tensor().f32_row(r)[k]};
        sum += value * row[at(k)];
      }
      y[at(r * p.cols + n)] = static_cast<float>(sum);
    }
  }
  return y;
}

void check_product(const Product& p, uint64_t seed) {
  const Rows x(p.rows, p.depth, 0, seed, Values::smooth);
  const Packed w(p.dtype, p.cols, p.depth, seed + 1);
  const Q8 q(x.tensor());
  MatmulArgs args;
  args.x = x.tensor();
  args.w = w.tensor();
  args.use_q8 = p.use_q8;
  if (p.use_q8) args.q8 = q.rows();
  const Rows first(p.rows, p.cols), again(p.rows, p.cols);
  for (const Rows* y : {&first, &again}) {
    args.y = y->tensor();
    other_runners()[0](&Ops::matmul, args);
  }
  const std::string what = cat(dtype_name(p.dtype), p.use_q8 ? " q8 [" : " [", p.rows, ", ", p.cols,
                               "], depth ", p.depth, ", seed ", seed);
  EXPECT_LE(distance(expected_product(p, x, q, w.tensor()), first.memory()), 1e-6) << what;
  EXPECT_EQ(first.memory(), again.memory()) << what << ": two runs differ";
}

bool every_case() {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  return !gpu()->adapter().software || (cases != nullptr && std::string_view(cases) == "all");
}

TEST(GpuSpans, EveryTypeMeetsEveryKernelOfProducts) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  struct Extents {
    int64_t rows, cols, depth;
  };
  uint64_t seed = 0;
  size_t shape = 0;
  const std::vector<DType> types = span_types();
  // Compiling takes long: if a CPU emulates the GPU, the rarer kernels use one type in three each.
  for (const Extents& e : {Extents{1, 40, 512},
                           {3, 40, 288},
                           {33, 72, 288},
                           {1, 17, 9472},
                           {2, 9, 1100},
                           {8, 35, 70},
                           {70, 1060, 64},
                           {256, 1060, 256},
                           {257, 1030, 96}}) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (shape > 2 && !every_case() && (i + shape) % 3 != 0) continue;
      for (const bool use_q8 : {false, true}) {
        ++seed;
        if (has_turn("GpuSpans", static_cast<size_t>(seed), kOneIn))
          check_product({types[i], use_q8, e.rows, e.cols, e.depth}, seed);
      }
    }
    ++shape;
  }
}

TEST(GpuSpans, ProductsOfRandomExtentsAreThoseOfTheDecodedWeights) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const std::vector<DType> types = span_types();
  const Rng rng(22, 0);
  uint64_t drawn = 0;
  const auto draw = [&](uint32_t most) { return int64_t{rng.bits(drawn++) % most} + 1; };
  const int cases = every_case() ? 300 : 60;
  for (int i = 0; i < cases; ++i) {
    // Rows and whether they are codes choose the kernel; the depth of one row is part of its text.
    static constexpr int64_t kRows[] = {2, 3, 5, 8, 9, 19, 40};
    const int64_t rows = kRows[static_cast<size_t>(draw(std::size(kRows)) - 1)];
    const DType dtype = types[static_cast<size_t>(i) % types.size()];
    const Product product{dtype, draw(2) == 2, rows, draw(90), draw(700)};
    if (has_turn("GpuSpans", static_cast<size_t>(i), kOneIn))
      check_product(product, static_cast<uint64_t>(i) + 100);
  }
}

TEST(GpuSpans, GradientsOfInputsAreThoseOfTheReference) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const DType dtype : sampled("GpuSpans", span_types())) {
    const Rows dy(20, 50, 0, 1, Values::smooth);
    const Packed w(dtype, 50, 300, 2);
    const Rows expected(20, 300), got(20, 300);
    reference_runner()(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), expected.tensor()});
    other_runners()[0](&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), got.tensor()});
    EXPECT_LE(distance(expected.memory(), got.memory()), 1e-6) << dtype_name(dtype);
  }
}

// A value is rounded once, whatever is multiplied first.
TEST(GpuSpans, RowsOfTablesHaveTheBitsOfTheReference) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const DType dtype : sampled("GpuSpans", span_types())) {
    for (const int64_t cols : {256, 300}) {
      const Packed table(dtype, 37, cols, 3);
      Ids ids(1, 6);
      ids.values() = {0, 36, 17, 5, 30, 11};
      const Rows expected(6, cols), got(6, cols);
      reference_runner()(&Ops::gather_rows,
                         GatherRowsArgs{table.tensor(), ids.tensor(), expected.tensor()});
      other_runners()[0](&Ops::gather_rows,
                         GatherRowsArgs{table.tensor(), ids.tensor(), got.tensor()});
      EXPECT_EQ(expected.memory(), got.memory()) << dtype_name(dtype) << ", " << cols << " columns";
    }
  }
}

}  // namespace
}  // namespace loom::core::test
