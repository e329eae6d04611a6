// matmul of many rows, and squared_distance: large tiles of the output (tiles.hpp), w decoded once
// per tile. Small outputs and products of quantized rows are in products_many.cpp.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/products/products.hpp"
#include "backend/webgpu/kernels/products/tiles.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

// Indices past the matrices read the last row or k. Past the last k both sides are 0.
constexpr Kernel kMany{"matmul_many", R"(
fn left_four(row: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) * p.x_s;
  if (ragged == 0u) {
    return vec4<f32>(x_at(j.x + k), x_at(j.y + k), x_at(j.z + k), x_at(j.w + k));
  }
  let i = min(k, p.depth - 1u);
  let v = vec4<f32>(x_at(j.x + i), x_at(j.y + i), x_at(j.z + i), x_at(j.w + i));
  return select(vec4<f32>(), v, k < p.depth);
}
fn column(w: vec4<f32>, k: u32) -> vec4<f32> {
  return select(vec4<f32>(), w, k < p.depth);
}
fn right_block(col: u32, k: u32) -> mat4x4<f32> {
  if (ragged == 0u) { return w_block(min(col, p.last), k); }
  var w = mat4x4<f32>();
  if (k < p.depth) { w = w_block(min(col, p.last), k); }
  return mat4x4<f32>(column(w[0], k), column(w[1], k + 1u), column(w[2], k + 2u),
                     column(w[3], k + 3u));
}
)"};

constexpr std::string_view kOut = R"(
fn out_needs(row: u32, col: u32) -> f32 { return bias_at(col); }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  y_set(row * p.y_s + col, finished(sum, need));
}
)";

constexpr std::string_view kKeep = R"(
fn out_needs(row: u32, col: u32) -> f32 { return 0.0; }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) { y_set(row * p.y_s + col, sum); }
)";

// The first of the last four rows of w. Rows past the matrix read it and are not stored.
int64_t last_four(const Tensor& w) {
  return (w.shape[0] - 1) / 4 * 4;
}

}  // namespace

Status matmul_many(Frame& frame, const MatmulArgs& args) {
  if (args.use_q8 || small_product(args.y.rows(), args.y.cols())) {
    Products products;
    products.x = args.x;
    products.q8 = args.q8;
    products.use_q8 = args.use_q8;
    products.parts[0] = {args.w, args.bias, args.y};
    products.activation = args.activation;
    return run_products(frame, products);
  }
  return matmul_tiles(frame, args);
}

Status matmul_tiles(Frame& frame, const MatmulArgs& args) {
  const int64_t depth = args.w.shape[1];
  const TilePlan plan =
      tile_plan(frame, {Product::Kind::matmul, args.y.rows(), args.y.cols(), depth, args.w.dtype});
  Call call(frame, kMany);
  tiles(weights(call, args.w, WeightView::quads), plan, Along::k)
      .read("x", args.x)
      .value("last", last_four(args.w));
  stage_blocks(call, Along::side);
  return run_tiles(frame, call, plan, [&](Call& c) {
    c.read("bias", args.bias)
        .write("y", args.y)
        .value("activation", static_cast<int64_t>(args.activation))
        .text(kFinish)
        .text(kOut);
  });
}

Status kernels::squared_distance(Frame& frame, const SquaredDistanceArgs& args) {
  const int64_t rows = args.y.rows(), cols = args.y.cols(), depth = args.c.shape[1];
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) {
    FillArgs zeros;
    zeros.y = args.y;
    return fill(frame, zeros);
  }
  const TilePlan plan =
      tile_plan(frame, {Product::Kind::squared_distance, rows, cols, depth, args.c.dtype});
  Call call(frame, kMany);
  tiles(weights(call, args.c, WeightView::quads), plan, Along::k, Term::squared_difference)
      .read("x", args.x)
      .value("last", last_four(args.c));
  stage_blocks(call, Along::side);
  return run_tiles(frame, call, plan, [&](Call& c) { c.write("y", args.y).text(kKeep); });
}

}  // namespace loom::core::webgpu
