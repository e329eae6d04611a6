// Products too large for the conformance drivers: every shape of tile and of workgroup that the
// kernels choose by size.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

struct Extents {
  int64_t rows, cols, depth;
};

void check_matmul(DType dtype, bool use_q8, int64_t rows, int64_t cols, int64_t depth) {
  const Rows x(rows, depth, 0, 1, Values::smooth);
  const Packed w(dtype, cols, depth, 2);
  const Q8 q(x.tensor());
  const Rows expected(rows, cols), got(rows, cols);
  MatmulArgs args;
  args.x = x.tensor();
  args.w = w.tensor();
  args.use_q8 = use_q8;
  if (use_q8) args.q8 = q.rows();
  args.y = expected.tensor();
  reference_runner()(&Ops::matmul, args);
  args.y = got.tensor();
  other_runners()[0](&Ops::matmul, args);
  EXPECT_LE(distance(expected.memory(), got.memory()), 1e-6)
      << dtype_name(dtype) << (use_q8 ? " q8 [" : " [") << rows << ", " << cols << "], depth "
      << depth;
}

void check_gemm(const Extents& e, bool a_transposed, bool b_transposed) {
  const Rows a(a_transposed ? e.depth : e.rows, a_transposed ? e.rows : e.depth, 3, 1,
               Values::smooth);
  const Rows b(b_transposed ? e.cols : e.depth, b_transposed ? e.depth : e.cols, 0, 2,
               Values::smooth);
  const Rows expected(e.rows, e.cols), got(e.rows, e.cols);
  const GemmArgs args{a.tensor(), b.tensor(), expected.tensor(), a_transposed, b_transposed};
  GemmArgs mine = args;
  mine.y = got.tensor();
  reference_runner()(&Ops::gemm, args);
  other_runners()[0](&Ops::gemm, mine);
  EXPECT_LE(distance(expected.memory(), got.memory()), 1e-6)
      << "[" << e.rows << ", " << e.cols << "], depth " << e.depth << (a_transposed ? ", A^T" : "")
      << (b_transposed ? ", B^T" : "");
}

void check_matmul_dx(DType dtype, const Extents& e) {
  const Rows dy(e.rows, e.depth, 0, 1, Values::smooth);
  const Packed w(dtype, e.depth, e.cols, 2);
  const Rows expected(e.rows, e.cols), got(e.rows, e.cols);
  reference_runner()(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), expected.tensor()});
  other_runners()[0](&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), got.tensor()});
  EXPECT_LE(distance(expected.memory(), got.memory()), 1e-6)
      << dtype_name(dtype) << " [" << e.rows << ", " << e.cols << "], depth " << e.depth;
}

// If a CPU emulates the GPU, each shape has one of the number types in turn, because compiling
// takes long.
bool has_type(size_t shape, size_t dtype) {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  const bool all = cases != nullptr && std::string_view(cases) == "all";
  return all || !gpu()->adapter().software || shape % 5 == dtype;
}

TEST(GpuProducts, EveryShapeOfMatmulIsRight) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  size_t shape = 0;
  for (const auto& [rows, cols, depth] : {Extents{1, 40, 2080},
                                          {3, 40, 3000},
                                          {8, 20, 1100},
                                          {70, 72, 96},
                                          {300, 1000, 70},
                                          {1280, 1300, 33}}) {
    const size_t turn = shape++;
    if (!has_turn("GpuProducts", turn, 6)) continue;
    check_matmul(DType::f16, false, rows, cols, depth);
    check_matmul(DType::q4_0, false, rows, cols, depth);
    check_matmul(DType::q4_0, true, rows, cols, depth);
    if (rows > 100) continue;
    check_matmul(DType::f32, false, rows, cols, depth);
    check_matmul(DType::i64, false, rows, cols, depth);
    static constexpr DType kMore[] = {DType::u8, DType::nvfp4, DType::mxfp4, DType::q8_0,
                                      DType::binary};
    for (size_t i = 0; i < std::size(kMore); ++i) {
      if (!has_type(turn, i)) continue;
      check_matmul(kMore[i], false, rows, cols, depth);
      check_matmul(kMore[i], true, rows, cols, depth);
    }
  }
}

TEST(GpuProducts, EveryShapeOfGemmIsRight) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const std::vector<Extents> shapes = {
      {70, 72, 530}, {40, 72, 2100}, {400, 1000, 70}, {1280, 1300, 48}};
  for (const Extents& e : sampled("GpuProducts", shapes)) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) check_gemm(e, a_transposed, b_transposed);
    }
    check_matmul_dx(DType::f32, e);
    check_matmul_dx(DType::u4, e);
  }
}

}  // namespace
}  // namespace loom::core::test
