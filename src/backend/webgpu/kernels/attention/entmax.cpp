// entmax, entmax_dx: a workgroup per row. z = x * scale * (alpha - 1) - max, y = max(z - t, 0)^(1 /
// (alpha - 1)). The largest z is 0, so |t| is as large as the largest z - t. The last bit of t then
// matters to y no more than that of any product.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// Classes of alpha: those that the reference solves by sorting, and others.
enum Kind : int64_t { kSparsemax, kEntmax15, kGeneral };
int64_t kind_of(float alpha) {
  return alpha == 2.0f ? kSparsemax : alpha == 1.5f ? kEntmax15 : kGeneral;
}

// The code before and after the search for t.
constexpr std::string_view kScaled = R"(
fn scaled(row: u32, c: u32) -> f32 { return (x_at(row * p.x_s + c) * p.scale) * (p.alpha - 1.0); }
fn largest_scaled(row: u32, lane: u32) -> f32 {
  var most = -infinity();
  for (var c = lane; c < p.cols; c += lanes) { most = max(most, scaled(row, c)); }
  return group_max(lane, most);
}
fn powered(v: f32) -> f32 {
  if (!(v > 0.0)) { return 0.0; }
  if (kind == 0u) { return v; }
  if (kind == 1u) { return v * v; }
  return loom_exp(loom_log(v) / (p.alpha - 1.0));
}
fn finish(row: u32, lane: u32, largest: f32, t: f32) {
  let masked = bitcast<u32>(largest) == 0xff800000u;
  for (var c = lane; c < p.cols; c += lanes) {
    let y = powered((scaled(row, c) - largest) - t);
    y_set(row * p.y_s + c, select(y, 0.0, masked));
  }
}
)";

// alpha 2 and 1.5, without sorting. The excess of the sum over 1 is convex and falls with t, so
// Newton's steps from -1 climb to t and never pass it. They take about six steps, up to a dozen for
// rows of 100000.
constexpr Kernel kNewton{"entmax_newton", R"(
fn run(row: u32, lane: u32) {
  let largest = largest_scaled(row, lane);
  var t = -1.0;
  for (var round = 0; round < 100; round++) {
    var part = 0.0;
    var slope_part = 0.0;
    for (var c = lane; c < p.cols; c += lanes) {
      let v = (scaled(row, c) - largest) - t;
      if (v > 0.0) {
        part += select(v * v, v, kind == 0u);
        slope_part += select(v + v, 1.0, kind == 0u);
      }
    }
    let excess = group_sum(lane, part) - 1.0;
    let step = uniform_value(lane, excess / max(group_sum(lane, slope_part), 1e-30));
    t = min(t + step, 0.0);
    if (!(step > 1e-7 * abs(t))) { break; }
  }
  finish(row, lane, largest, t);
}
)"};

// The halvings of the reference.
constexpr Kernel kHalving{"entmax_halving", R"(
fn run(row: u32, lane: u32) {
  let largest = largest_scaled(row, lane);
  var low = -1.0;
  var width = 1.0;
  for (var round = 0; round < 60; round++) {
    width = width * 0.5;
    let t = low + width;
    var part = 0.0;
    for (var c = lane; c < p.cols; c += lanes) {
      part += powered((scaled(row, c) - largest) - t);
    }
    if (group_sum(lane, part) >= 1.0) { low = t; }
  }
  finish(row, lane, largest, low);
}
)"};

// With s = y^(2 - alpha) on the support: dx = scale * s * (dy - sum(s dy) / sum(s)). The difference
// may cancel, as in softmax_dx. So it uses the sums of rule 4 and the reference point of the
// reference.
constexpr Kernel kEntmaxDx{"entmax_dx", R"(
fn weight(y: f32) -> f32 {
  if (!(y > 0.0)) { return 0.0; }
  if (kind == 0u) { return 1.0; }
  if (kind == 1u) { return sqrt(y); }
  return loom_exp((2.0 - p.alpha) * loom_log(y));
}
fn run(row: u32, lane: u32) {
  let y0 = row * p.y_s;
  let dy0 = row * p.dy_s;
  var base = 0.0;
  if (kind == 2u && p.alpha > 2.0) {
    var least = -infinity();
    for (var c = lane; c < p.cols; c += lanes) {
      let y = y_at(y0 + c);
      if (y > 0.0) { least = max(least, -y); }
    }
    least = group_max(lane, least);
    var most = -infinity();
    for (var c = lane; c < p.cols; c += lanes) {
      if (-y_at(y0 + c) == least) { most = max(most, dy_at(dy0 + c)); }
    }
    most = group_max(lane, most);
    base = select(most, 0.0, bitcast<u32>(most) == 0xff800000u);
  }
  var weighted = 0.0;
  var total = 0.0;
  for (var begin = 0u; begin < p.cols; begin += 4096u) {
    let end = min(begin + 4096u, p.cols);
    var weighted_part = 0.0;
    var part = 0.0;
    for (var c = begin + lane; c < end; c += lanes) {
      let w = weight(y_at(y0 + c));
      weighted_part += w * (dy_at(dy0 + c) - base);
      part += w;
    }
    weighted += group_sum(lane, weighted_part);
    total += group_sum(lane, part);
  }
  let mean = weighted / total;
  for (var c = lane; c < p.cols; c += lanes) {
    let dx = (p.scale * weight(y_at(y0 + c))) * ((dy_at(dy0 + c) - base) - mean);
    dx_set(row * p.dx_s + c, select(dx, 0.0, total == 0.0));
  }
}
)"};

}  // namespace

Status entmax(Frame& frame, const EntmaxArgs& args) {
  const int64_t cols = args.x.cols(), rows = cols > 0 ? args.x.rows() : 0;
  const int64_t kind = kind_of(args.alpha);
  return Call(frame, kind == kGeneral ? kHalving : kNewton)
      .text(kScaled)
      .read("x", args.x)
      .write("y", args.y)
      .value("cols", cols)
      .value("scale", args.scale)
      .value("alpha", args.alpha)
      .constant("kind", kind)
      .lanes(row_lanes(rows, cols))
      .rows(rows);
}

Status entmax_dx(Frame& frame, const EntmaxDxArgs& args) {
  const int64_t cols = args.y.cols(), rows = cols > 0 ? args.y.rows() : 0;
  return Call(frame, kEntmaxDx)
      .read("y", args.y)
      .read("dy", args.dy)
      .write("dx", args.dx)
      .value("cols", cols)
      .value("scale", args.scale)
      .value("alpha", args.alpha)
      .constant("kind", kind_of(args.alpha))
      .lanes(32)
      .rows(rows);
}

}  // namespace loom::core::webgpu::kernels
