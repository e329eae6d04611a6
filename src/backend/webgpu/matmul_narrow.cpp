#include "backend/webgpu/matmul_narrow.hpp"

#include "backend/webgpu/products.hpp"
#include "backend/webgpu/tiles.hpp"
#include "backend/webgpu/weights.hpp"
#include "base/checked.hpp"
#include "dtype/r16.hpp"

namespace loom::webgpu {
namespace {

// A workgroup has four rows of x and a span of k. Four neighbouring lanes share the sixteen rows of
// w, the lanes beyond them take the next k; their sums are added in the order of a tree.
constexpr Kernel kNarrow{"matmul_narrow", R"(
var<workgroup> sums: array<vec4<f32>, 256>;
fn x_four(row: u32, k: u32) -> vec4<f32> {
  let at = min(row, p.rows - 1u) * p.x_s;
  let last = p.depth - 1u;
  if (k + 3u <= last) {
    return vec4<f32>(x_at(at + k), x_at(at + k + 1u), x_at(at + k + 2u), x_at(at + k + 3u));
  }
  var v = vec4<f32>();
  for (var j = 0u; j < 4u; j++) {
    if (k + j <= last) { v[j] = x_at(at + k + j); }
  }
  return v;
}
fn run(group: vec3<u32>, lane: u32) {
  let row = group.y * 4u;
  var s: array<vec4<f32>, 4>;
  for (var k = tile_begin(group.z) + lane / 4u * 4u; k < tile_end(group.z); k += lanes) {
    let w = w_block(lane % 4u * 4u, k);
    for (var r = 0u; r < 4u; r++) { s[r] += w * x_four(row + r, k); }
  }
  for (var r = 0u; r < 4u; r++) {
    sums[lane] = s[r];
    workgroupBarrier();
    for (var n = lanes / 2u; n >= 4u; n /= 2u) {
      if (lane < n) { sums[lane] += sums[lane + n]; }
      workgroupBarrier();
    }
    if (lane < p.cols && row + r < p.rows) {
      out(row + r, lane, sums[lane / 4u][lane % 4u], group.z);
    }
    workgroupBarrier();
  }
}
)"};

constexpr std::string_view kSpan = R"(
fn tile_begin(z: u32) -> u32 { return z * p.span; }
fn tile_end(z: u32) -> u32 { return min((z + 1u) * p.span, p.depth); }
)";

constexpr std::string_view kOut = R"(
fn out(row: u32, col: u32, sum: f32, z: u32) { y_set(row * p.y_s + col, finish(sum, col)); }
)";

constexpr int64_t kStep = 256;  // k that a workgroup takes at a time

}  // namespace

bool is_narrow(const MatmulArgs& args) {
  return !args.use_q8 && args.w.shape[0] <= kR16Rows && args.w.shape[1] >= kStep;
}

Status matmul_narrow(Frame& frame, const MatmulArgs& args) {
  TilePlan plan;
  plan.narrow = true;
  plan.rows = args.y.rows();
  plan.cols = args.y.cols();
  plan.depth = args.w.shape[1];
  // A second dispatch is worth four steps.
  const int64_t steps = ceil_div(plan.depth, kStep);
  plan.span = (steps <= 4 ? steps : ceil_div(steps, int64_t{64})) * kStep;
  plan.splits = ceil_div(plan.depth, plan.span);
  Call call(frame, kNarrow);
  weights(call, args.w, WeightView::quads)
      .read("x", args.x)
      .value("rows", plan.rows)
      .value("cols", plan.cols)
      .value("depth", plan.depth)
      .value("span", plan.span)
      .lanes(256)
      .beside(4096)
      .text(kSpan);
  return run_tiles(frame, call, plan, [&](Call& c) {
    c.read("bias", args.bias)
        .write("y", args.y)
        .value("activation", static_cast<int64_t>(args.activation))
        .text(kFinish)
        .text(kOut);
  });
}

}  // namespace loom::webgpu
