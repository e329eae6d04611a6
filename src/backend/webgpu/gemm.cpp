// gemm and matmul_dx: products in tiles (tiles.hpp).
#include "backend/webgpu/elementwise.hpp"
#include "backend/webgpu/kernels.hpp"
#include "backend/webgpu/tiles.hpp"
#include "backend/webgpu/weights.hpp"

namespace loom::webgpu::kernels {
namespace {

// A sum of no terms: 0, or what y held.
Status no_terms(Frame& frame, const Tensor& y, bool accumulate) {
  if (accumulate) return {};
  FillArgs zeros;
  zeros.y = y;
  return fill(frame, zeros);
}

// What a sum becomes: y (+)= sum.
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

// The same, and at once dz = y times the derivative of an activation.
constexpr std::string_view kSetSlope = R"(
fn out_needs(row: u32, col: u32) -> f32 { return at_at(row * p.y_s + col); }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  let i = row * p.y_s + col;
  y_set(i, sum);
  dz_set(i, sum * activate_dx(slope, need));
}
)";

// Lanes next to each other read what is next to each other in memory: along k where the matrix
// lies so, else along the side. Places beyond the matrix are read at its last row or k; beyond the
// last k the left side counts as 0.
constexpr Kernel kGemm{"gemm", R"(
fn a_four(row: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u));
  var at = j * p.a_s + k;
  if (a_transposed == 1u) { at = k * p.a_s + j; }
  return vec4<f32>(a_at(at.x), a_at(at.y), a_at(at.z), a_at(at.w));
}
fn b_four(col: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(col, col + 1u, col + 2u, col + 3u), vec4<u32>(p.cols - 1u));
  var at = k * p.b_s + j;
  if (b_transposed == 1u) { at = j * p.b_s + k; }
  return vec4<f32>(b_at(at.x), b_at(at.y), b_at(at.z), b_at(at.w));
}
fn run(group: vec3<u32>, lane: u32) {
  let row0 = group.y * side;
  let col0 = group.x * side;
  var t = Tile();
  for (var k0 = tile_begin(group.z); k0 < tile_end(group.z); k0 += 16u) {
    for (var u = lane; u < side * 4u; u += lanes) {
      var k = u % 16u;
      var q = u / 16u;
      if (a_transposed == 1u) { q = u % (side / 4u); k = u / (side / 4u); }
      if (ragged == 1u) {
        let v = a_four(row0 + 4u * q, min(k0 + k, p.depth - 1u));
        left_put(k, q, select(vec4<f32>(), v, k0 + k < p.depth));
      } else {
        left_put(k, q, a_four(row0 + 4u * q, k0 + k));
      }
    }
    for (var u = lane; u < side * 4u; u += lanes) {
      var k = u / (side / 4u);
      var q = u % (side / 4u);
      if (b_transposed == 1u) { k = u % 16u; q = u / 16u; }
      var at = k0 + k;
      if (ragged == 1u) { at = min(at, p.depth - 1u); }
      right_put(k, q, b_four(col0 + 4u * q, at));
    }
    workgroupBarrier();
    tile_step(&t, lane);
    workgroupBarrier();
  }
  tile_store(&t, group, lane);
}
)"};

// dx = dy . w: the sum runs over the rows of w, sixteen of a group at a time.
constexpr Kernel kMatmulDx{"matmul_dx", R"(
fn dy_four(row: u32, n: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) * p.dy_s +
          min(n, p.depth - 1u);
  let v = vec4<f32>(dy_at(j.x), dy_at(j.y), dy_at(j.z), dy_at(j.w));
  return select(vec4<f32>(), v, n < p.depth);
}
fn run(group: vec3<u32>, lane: u32) {
  let row0 = group.y * side;
  let col0 = group.x * side;
  var t = Tile();
  for (var n0 = tile_begin(group.z); n0 < tile_end(group.z); n0 += 16u) {
    for (var u = lane; u < side * 4u; u += lanes) {
      left_put(u % 16u, u / 16u, dy_four(row0 + u / 16u * 4u, n0 + u % 16u));
    }
    for (var u = lane; u < side; u += lanes) {
      let n = u % 4u * 4u;
      let q = u / 4u;
      // Columns beyond the matrix are not stored.
      let rows = transpose(w_block(n0 + n, min(col0 + 4u * q, p.last)));
      right_put(n, q, rows[0]);
      right_put(n + 1u, q, rows[1]);
      right_put(n + 2u, q, rows[2]);
      right_put(n + 3u, q, rows[3]);
    }
    workgroupBarrier();
    tile_step(&t, lane);
    workgroupBarrier();
  }
  tile_store(&t, group, lane);
}
)"};

}  // namespace

Status gemm(Frame& frame, const GemmArgs& args) {
  const int64_t depth = args.a_transposed ? args.a.rows() : args.a.cols();
  const int64_t rows = args.y.rows(), cols = args.y.cols();
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) return no_terms(frame, args.y, args.accumulate);
  const TilePlan plan = tile_plan(rows, cols, depth);
  Call call(frame, kGemm);
  tiles(call.read("a", args.a).read("b", args.b), plan)
      .constant("a_transposed", args.a_transposed ? 1 : 0)
      .constant("b_transposed", args.b_transposed ? 1 : 0)
      .constant("ragged", depth % 16 != 0 ? 1 : 0);
  return run_tiles(frame, call, plan, [&](Call& c) { output(c, args.y, args.accumulate); });
}

Status matmul_dx(Frame& frame, const MatmulDxArgs& args) {
  return matmul_dx_slope(frame, args, nullptr);
}

Status matmul_dx_slope(Frame& frame, const MatmulDxArgs& args, const UnaryDxArgs* slope) {
  const int64_t rows = args.dx.rows(), cols = args.dx.cols(), depth = args.w.shape[0];
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) return no_terms(frame, args.dx, args.accumulate);
  const TilePlan plan = tile_plan(rows, cols, depth);
  Call call(frame, kMatmulDx);
  call.read("dy", args.dy);
  tiles(weights(call, args.w, WeightView::quads), plan).value("last", (cols - 1) / 4 * 4);
  return run_tiles(frame, call, plan, [&](Call& c) {
    if (slope == nullptr) return output(c, args.dx, args.accumulate);
    c.write("y", args.dx).read("at", slope->x).write("dz", slope->dx);
    c.constant("slope", static_cast<int64_t>(slope->kind));
    c.text(slope_text(slope->from_output)).text(kSetSlope);
  });
}

}  // namespace loom::webgpu::kernels
