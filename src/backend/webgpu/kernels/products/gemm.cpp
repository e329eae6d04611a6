// gemm and matmul_dx: products in tiles (tiles.hpp).
#include "backend/webgpu/kernels/elementwise.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/products/tiles.hpp"
#include "backend/webgpu/wgsl/weights.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// An empty sum: 0, or the former y.
Status no_terms(Frame& frame, const Tensor& y, bool accumulate) {
  if (accumulate) return {};
  FillArgs zeros;
  zeros.y = y;
  return fill(frame, zeros);
}

// Stores a sum: y (+)= sum.
constexpr std::string_view kSet = R"(
fn out_needs(row: u32, col: u32) -> f32 { return 0.0; }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) { y_set(row * p.y_s + col, sum); }
)";
constexpr std::string_view kAdd = R"(
fn out_needs(row: u32, col: u32) -> f32 { return y_at(row * p.y_s + col); }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) { y_set(row * p.y_s + col, need + sum); }
)";

void output(Call& call, const Tensor& y, bool accumulate) {
  accumulate ? call.update("y", y).text(kAdd) : call.write("y", y).text(kSet);
}

// The same, and dz = y times the derivative of an activation.
constexpr std::string_view kSetSlope = R"(
fn out_needs(row: u32, col: u32) -> f32 { return at_at(row * p.y_s + col); }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  let i = row * p.y_s + col;
  y_set(i, sum);
  dz_set(i, sum * activate_dx(slope, need));
}
)";

// Indices past the matrix read its last row or k. Past the last k the left side counts as 0.
constexpr Kernel kGemm{"gemm", R"(
fn left_four(row: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u));
  var n = k;
  if (ragged == 1u) { n = min(k, p.depth - 1u); }
  var at = j * p.a_s + n;
  if (a_transposed == 1u) { at = n * p.a_s + j; }
  let v = vec4<f32>(a_at(at.x), a_at(at.y), a_at(at.z), a_at(at.w));
  return select(vec4<f32>(), v, ragged == 0u || k < p.depth);
}
fn right_four(col: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(col, col + 1u, col + 2u, col + 3u), vec4<u32>(p.cols - 1u));
  var n = k;
  if (ragged == 1u) { n = min(k, p.depth - 1u); }
  var at = n * p.b_s + j;
  if (b_transposed == 1u) { at = j * p.b_s + n; }
  return vec4<f32>(b_at(at.x), b_at(at.y), b_at(at.z), b_at(at.w));
}
)"};

// dx = dy . w: the sum runs over the rows of w. Columns past the matrix are not stored.
constexpr Kernel kMatmulDx{"matmul_dx", R"(
fn left_four(row: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) * p.dy_s +
          min(k, p.depth - 1u);
  let v = vec4<f32>(dy_at(j.x), dy_at(j.y), dy_at(j.z), dy_at(j.w));
  return select(vec4<f32>(), v, k < p.depth);
}
fn right_block(col: u32, k: u32) -> mat4x4<f32> {
  if (ragged == 1u && k >= p.depth) { return mat4x4<f32>(); }
  return transpose(w_block(k, min(col, p.last)));
}
)"};

}  // namespace

Status gemm(Frame& frame, const GemmArgs& args) {
  const int64_t depth = args.a_transposed ? args.a.rows() : args.a.cols();
  const int64_t rows = args.y.rows(), cols = args.y.cols();
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) return no_terms(frame, args.y, args.accumulate);
  const TilePlan plan = tile_plan(frame, {Product::Kind::gemm, rows, cols, depth, DType::f32,
                                          args.a_transposed, args.b_transposed});
  Call call(frame, kGemm);
  tiles(call.read("a", args.a).read("b", args.b), plan, args.a_transposed ? Along::side : Along::k)
      .constant("a_transposed", args.a_transposed ? 1 : 0)
      .constant("b_transposed", args.b_transposed ? 1 : 0);
  stage_quads(call, args.b_transposed ? Along::k : Along::side);
  return run_tiles(frame, call, plan, [&](Call& c) { output(c, args.y, args.accumulate); });
}

Status matmul_dx(Frame& frame, const MatmulDxArgs& args) {
  return matmul_dx_slope(frame, args, nullptr);
}

Status matmul_dx_slope(Frame& frame, const MatmulDxArgs& args, const UnaryDxArgs* slope) {
  const int64_t rows = args.dx.rows(), cols = args.dx.cols(), depth = args.w.shape[0];
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) return no_terms(frame, args.dx, args.accumulate);
  const TilePlan plan =
      tile_plan(frame, {Product::Kind::matmul_dx, rows, cols, depth, args.w.dtype});
  Call call(frame, kMatmulDx);
  call.read("dy", args.dy);
  tiles(weights(call, args.w, WeightView::quads), plan, Along::k).value("last", (cols - 1) / 4 * 4);
  stage_blocks(call, Along::k);
  return run_tiles(frame, call, plan, [&](Call& c) {
    if (slope == nullptr) return output(c, args.dx, args.accumulate);
    c.write("y", args.dx).read("at", slope->x).write("dz", slope->dx);
    c.constant("slope", static_cast<int64_t>(slope->kind));
    c.text(slope_text(slope->from_output)).text(kSetSlope);
  });
}

}  // namespace loom::core::webgpu::kernels
