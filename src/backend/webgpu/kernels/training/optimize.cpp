// optimize: one invocation per value of the gradient, the formulas of ops/args.hpp in their order.
// Several parameters at once: fusion/fused_optimize.cpp.
#include "backend/webgpu/kernels/training/optimize.hpp"

#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu {
namespace {

// Kinds are those of UpdateKind, in its order. c1, c2, c3: OptimizeArgs::hyper.
constexpr std::string_view kUpdate = R"(
struct Updated { w: f32, m: f32, v: f32 }
fn updated(w: f32, g: f32, m0: f32, v0: f32, rate: f32, c1: f32, c2: f32,
           c3: f32) -> Updated {
  var decayed = g + p.decay * w;
  var y = w;
  var m = m0;
  var v = v0;
  switch (kind) {
    case 0u: { y = w - rate * decayed; }
    case 1u: {
      m = p.beta1 * m + decayed;
      y = w - rate * m;
    }
    case 2u: {
      m = p.beta1 * m + decayed;
      y = w - rate * (decayed + p.beta1 * m);
    }
    case 3u: {
      v = p.beta2 * v + (1.0 - p.beta2) * (decayed * decayed);
      y = w - (rate * decayed) / (sqrt(v) + p.eps);
    }
    case 6u: {
      let mixed = p.beta1 * m + (1.0 - p.beta1) * g;
      y = w - rate * (sign(mixed) + p.decay * w);
      m = p.beta2 * m + (1.0 - p.beta2) * g;
    }
    case 7u: {
      v = v + decayed * decayed;
      y = w - (rate * decayed) / (sqrt(v) + p.eps);
    }
    case 8u: {
      v = p.beta2 * v + (1.0 - p.beta2) * (decayed * decayed);
      let d = (sqrt(m + p.eps) / sqrt(v + p.eps)) * decayed;
      m = p.beta2 * m + (1.0 - p.beta2) * (d * d);
      y = w - rate * d;
    }
    case 9u, 11u: {
      m = p.beta1 * m + (1.0 - p.beta1) * decayed;
      v = p.beta2 * v + (1.0 - p.beta2) * (decayed * decayed);
      if (kind == 9u) {
        y = w - (rate * (c1 * decayed + c3 * m)) / (sqrt(v / c2) + p.eps);
      } else {
        let step = rate * (m / c1);
        y = w - select(step, (step * c3) / (sqrt(v) + p.eps), c3 > 0.0);
      }
    }
    case 10u: {
      m = p.beta1 * m + (1.0 - p.beta1) * decayed;
      v = max(p.beta2 * v, abs(decayed) + p.eps);
      y = w - (rate * (m / c1)) / v;
    }
    default: {
      if (kind == 5u) {
        y = w - (rate * p.decay) * w;
        decayed = g;
      }
      m = p.beta1 * m + (1.0 - p.beta1) * decayed;
      v = p.beta2 * v + (1.0 - p.beta2) * (decayed * decayed);
      y = y - (rate * (m / c1)) / (sqrt(v / c2) + p.eps);
    }
  }
  return Updated(y, m, v);
}
)";

constexpr Kernel kOptimize{"optimize", R"(
fn run(i: u32) {
  var scale = 1.0;
  if (has_scale) { scale = scale_at(0u); }
  if (is_nan(scale)) { return; }
  let at = i / p.cols;
  let col = i % p.cols;
  var row = i32(at);
  if (has_rows) { row = rows_at(at); }
  if (row < 0) { return; }
  let r = u32(row);
  var m = 0.0;
  var v = 0.0;
  if (has_m) { m = m_at(r * p.m_s_ + col); }
  if (has_v) { v = v_at(r * p.v_s_ + col); }
  let g = g_at(at * p.g_s + col) * scale;
  let to = updated(w_at(r * p.w_s + col), g, m, v, hyper_at(0u), hyper_at(1u), hyper_at(2u),
                   hyper_at(3u));
  w_set(r * p.w_s + col, to.w);
  if (has_m) { m_set(r * p.m_s_ + col, to.m); }
  if (has_v) { v_set(r * p.v_s_ + col, to.v); }
}
)"};

}  // namespace

Call& optimizer_numbers(Call& call, const OptimizeArgs& args) {
  return call.value("beta1", args.beta1)
      .value("beta2", args.beta2)
      .value("eps", args.eps)
      .value("decay", args.decay)
      .constant("kind", static_cast<int64_t>(args.kind))
      .text(kUpdate);
}

Status kernels::optimize(Frame& frame, const OptimizeArgs& args) {
  Call call(frame, kOptimize);
  return optimizer_numbers(call, args)
      .update("w", args.p)
      .read("g", args.g)
      .update("m", keeps_m(args.kind) ? args.m : Tensor{})
      .update("v", keeps_v(args.kind) ? args.v : Tensor{})
      .read("hyper", args.hyper)
      .read("scale", args.scale)
      .ids("rows", args.rows)
      .value("cols", args.p.cols())
      .value("m_s_", args.m.row_stride)
      .value("v_s_", args.v.row_stride)
      .items(args.g.shape.count());
}

}  // namespace loom::core::webgpu
