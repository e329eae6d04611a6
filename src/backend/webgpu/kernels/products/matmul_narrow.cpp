#include "backend/webgpu/kernels/products/matmul_narrow.hpp"

#include <algorithm>

#include "backend/webgpu/kernels/products/products.hpp"
#include "backend/webgpu/kernels/products/tiles.hpp"
#include "backend/webgpu/kernels/training/loss.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::webgpu {
namespace {

// A workgroup has one row of x, or four, and four rows of w, and a span of k that its lanes share.
// Their sums are added in the order of a tree. Loads of several steps are issued at once.
constexpr Kernel kNarrow{"matmul_narrow", R"(
var<workgroup> sums: array<vec4<f32>, lanes>;
fn run(group: vec3<u32>, lane: u32) {
  let row = group.y * tall;
  let col = group.x * 4u + lane % 4u;
  var need = out_needs(row, min(col, p.cols - 1u));
  var s: array<vec4<f32>, tall>;
  let end = tile_end(group.z);
  for (var k = tile_begin(group.z); k < end; k += step * ahead) {
    turn(&s, group.x, row, k, end, lane);
  }
  for (var r = 0u; r < tall; r++) {
    sums[lane] = s[r];
    workgroupBarrier();
    for (var n = lanes / 2u; n > 0u; n /= 2u) {
      if (lane < n) { sums[lane] += sums[lane + n]; }
      workgroupBarrier();
    }
    if (lane < 4u && col < p.cols && row + r < p.rows) {
      out(row + r, col, sums[0][lane], group.z, need);
    }
    if (r + 1u < tall) { need = out_needs(min(row + r + 1u, p.rows - 1u), min(col, p.cols - 1u)); }
    workgroupBarrier();
  }
}
)"};

// Wide types: one k at a time; adjacent lanes have adjacent k.
constexpr std::string_view kTurnWide = R"(
const step = lanes;
fn turn(s: ptr<function, array<vec4<f32>, tall>>, block: u32, row: u32, k: u32, end: u32,
        lane: u32) {
  let base = w_base(block * 4u);
  var w: array<vec4<f32>, ahead>;
  var x: array<f32, tall * ahead>;
  for (var a = 0u; a < ahead; a++) {
    let at = min(k + lane + a * step, p.depth - 1u);
    w[a] = w_rows(base, block * 4u, at);
    for (var r = 0u; r < tall; r++) {
      x[a * tall + r] = select(0.0, x_at(min(row + r, p.rows - 1u) * p.x_s + at),
                               k + lane + a * step < end);
    }
  }
  for (var a = 0u; a < ahead; a++) {
    for (var r = 0u; r < tall; r++) { (*s)[r] += w[a] * x[a * tall + r]; }
  }
}
)";

// Types of k-groups: four k at a time, in packed order.
constexpr std::string_view kTurnGroups = R"(
const step = lanes * 4u;
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
fn turn(s: ptr<function, array<vec4<f32>, tall>>, block: u32, row: u32, k: u32, end: u32,
        lane: u32) {
  let last = (p.depth - 1u) / 4u * 4u;
  var w: array<mat4x4<f32>, ahead>;
  var x: array<vec4<f32>, tall * ahead>;
  for (var a = 0u; a < ahead; a++) {
    let at = min(k + lane * 4u + a * step, last);
    w[a] = w_block(block * 4u, at);
    for (var r = 0u; r < tall; r++) {
      x[a * tall + r] = select(vec4<f32>(), x_four(row + r, at), k + lane * 4u + a * step < end);
    }
  }
  for (var a = 0u; a < ahead; a++) {
    for (var r = 0u; r < tall; r++) { (*s)[r] += w[a] * x[a * tall + r]; }
  }
}
)";

constexpr std::string_view kSpan = R"(
fn tile_begin(z: u32) -> u32 { return z * p.span; }
fn tile_end(z: u32) -> u32 { return min((z + 1u) * p.span, p.depth); }
)";

constexpr std::string_view kOut = R"(
fn out_needs(row: u32, col: u32) -> f32 { return bias_at(col); }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  y_set(row * p.y_s + col, finished(sum, need));
}
)";

// Adds the gradient of a loss, as in loss.cpp.
constexpr std::string_view kOutLoss = R"(
var<private> wanted: f32;
var<private> row_weight: f32;
fn out_needs(row: u32, col: u32) -> f32 {
  wanted = target_at(row * p.target_row + col);
  row_weight = select(1.0, weight_at(row), has_weight);
  return bias_at(col);
}
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  let v = finished(sum, need);
  y_set(row * p.y_s + col, v);
  let slope = row_weight * (loss_slope(loss_kind, p.delta, v, wanted) / f32(p.cols));
  dpred_set(row * p.dpred_row + col, select(slope, 0.0, row_weight == 0.0));
}
)";

constexpr int kLanes = 256;

// Rows of x per workgroup. w is read once per row, which is cheap only for few rows.
int64_t rows_together(int64_t rows, int64_t depth) {
  return rows * depth <= int64_t{512} << 10 ? 1 : 4;
}

}  // namespace

bool is_narrow(const MatmulArgs& args) {
  return !args.use_q8 && args.w.shape[0] <= kR16Rows && args.w.shape[1] >= kLanes;
}

Status matmul_narrow(Frame& frame, const MatmulArgs& args, const LossArgs* loss) {
  TilePlan plan;
  plan.rows = args.y.rows();
  plan.cols = args.y.cols();
  plan.depth = args.w.shape[1];
  plan.tall = rows_together(plan.rows, plan.depth);
  const bool wide = reads_rows(args.w.dtype);
  const int64_t step = wide ? kLanes : kLanes * 4;
  const int64_t ahead = (plan.tall == 1 ? 4 : 2) * (wide ? 4 : 1);
  // A second dispatch, to add up parts, is worth six turns.
  const int64_t turns = ceil_div(plan.depth, step * ahead);
  plan.span =
      (turns <= 6 ? turns : std::max(ceil_div(turns, int64_t{64}), int64_t{2})) * step * ahead;
  plan.splits = ceil_div(plan.depth, plan.span);
  Call call(frame, kNarrow);
  weights(call, args.w, WeightView::quads)
      .read("x", args.x)
      .value("rows", plan.rows)
      .value("cols", plan.cols)
      .value("depth", plan.depth)
      .value("span", plan.span)
      .constant("tall", plan.tall)
      .constant("ahead", ahead)
      .lanes(kLanes)
      .beside(kLanes * 16)
      .text(wide ? kTurnWide : kTurnGroups)
      .text(kSpan);
  return run_tiles(frame, call, plan, [&](Call& c) {
    c.read("bias", args.bias)
        .write("y", args.y)
        .value("activation", static_cast<int64_t>(args.activation))
        .text(kFinish)
        .text(loss != nullptr ? kOutLoss : kOut);
    if (loss == nullptr) return;
    c.read("target", loss->target)
        .read("weight", loss->weight)
        .write("dpred", loss->dpred)
        .value("target_row", loss->target.row_stride)
        .value("dpred_row", loss->dpred.row_stride)
        .value("delta", loss->delta)
        .constant("loss_kind", static_cast<int64_t>(loss->kind))
        .text(kLossTerms);
  });
}

}  // namespace loom::core::webgpu
