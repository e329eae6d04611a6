// norm, norm_dx: a workgroup per segment of a row. Its invocations stride over the segment, so that
// adjacent invocations read adjacent values. A value is written by the only invocation that read
// it.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// Segment `i` of all: its first values in x and y, and in gamma and beta if these have one value
// per position of the row.
constexpr std::string_view kSegment = R"(
struct Segment { row: u32, begin: u32, gamma: u32 }
fn segment(i: u32) -> Segment {
  let row = i / p.segments;
  let begin = (i % p.segments) * p.n;
  return Segment(row, begin, begin * p.gamma_moves);
}
)";

constexpr Kernel kNorm{"norm", R"(
fn run(i: u32, lane: u32) {
  let s = segment(i);
  let x0 = s.row * p.x_s + s.begin;
  let y0 = s.row * p.y_s + s.begin;
  let moments = row_moments(layer != 0u, x0, p.n, p.eps, lane);
  let mean = moments.x;
  let inverse = moments.y;
  for (var c = lane; c < p.n; c += lanes) {
    var y = (x_at(x0 + c) - mean) * inverse;
    if (has_gamma) { y = y * gamma_at(s.gamma + c); }
    if (has_beta) { y = y + beta_at(s.begin * p.beta_moves + c); }
    y_set(y0 + c, y);
  }
}
)"};

// u = dy * gamma, h = (x - mean) * inverse; dx = inverse * (u - mean(u) - h mean(u h)).
constexpr Kernel kNormDx{"norm_dx", R"(
fn run(i: u32, lane: u32) {
  let s = segment(i);
  let x0 = s.row * p.x_s + s.begin;
  let dy0 = s.row * p.dy_s + s.begin;
  let count = f32(p.n);
  let moments = row_moments(layer != 0u, x0, p.n, p.eps, lane);
  let mean = moments.x;
  let inverse = moments.y;
  var sum_u = 0.0;
  var sum_uh = 0.0;
  for (var c = lane; c < p.n; c += lanes) {
    var u = dy_at(dy0 + c);
    if (has_gamma) { u = u * gamma_at(s.gamma + c); }
    sum_u += u;
    sum_uh += u * ((x_at(x0 + c) - mean) * inverse);
  }
  let mean_uh = group_sum(lane, sum_uh) / count;
  var mean_u = 0.0;
  if (layer != 0u) { mean_u = group_sum(lane, sum_u) / count; }
  for (var c = lane; c < p.n; c += lanes) {
    let dy = dy_at(dy0 + c);
    var u = dy;
    if (has_gamma) { u = u * gamma_at(s.gamma + c); }
    let h = (x_at(x0 + c) - mean) * inverse;
    scaled_set(s.row * p.scaled_row + s.begin + c, dy * h);
    dx_set(s.row * p.dx_s + s.begin + c, inverse * ((u - mean_u) - h * mean_uh));
  }
}
)"};

}  // namespace

Status norm(Frame& frame, const NormArgs& args) {
  const int64_t cols = args.x.cols(), n = cols / args.segments;
  const int64_t count = n > 0 ? args.x.rows() * args.segments : 0;
  const auto moves = [&](const Tensor& t) { return int64_t{t.shape.count() == cols}; };
  return Call(frame, kNorm)
      .text(kSegment)
      .read("x", args.x)
      .read("gamma", args.gamma)
      .read("beta", args.beta)
      .write("y", args.y)
      .value("segments", args.segments)
      .value("n", n)
      .value("gamma_moves", moves(args.gamma))
      .value("beta_moves", moves(args.beta))
      .value("eps", args.eps)
      .constant("layer", int64_t{args.kind == NormKind::layer})
      .lanes(row_lanes(frame.rows_alone(), count, n))
      .rows(count);
}

Status norm_dx(Frame& frame, const NormDxArgs& args) {
  const int64_t cols = args.x.cols(), n = cols / args.segments;
  const int64_t count = n > 0 ? args.x.rows() * args.segments : 0;
  return Call(frame, kNormDx)
      .text(kSegment)
      .read("x", args.x)
      .read("gamma", args.gamma)
      .read("dy", args.dy)
      .write("dx", args.dx)
      .write("scaled", args.scaled)
      .value("segments", args.segments)
      .value("n", n)
      .value("gamma_moves", int64_t{args.gamma.shape.count() == cols})
      .value("scaled_row", args.scaled.row_stride)
      .value("eps", args.eps)
      .constant("layer", int64_t{args.kind == NormKind::layer})
      .lanes(row_lanes(count, n))
      .rows(count);
}

}  // namespace loom::core::webgpu::kernels
