// optimise: one invocation per value of the gradient, the formulas of ops/args.hpp in their order.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {
namespace {

// Kinds are those of OptimizerKind: sgd, momentum, nesterov, rmsprop, adam, adamw, lion.
constexpr Kernel kOptimise{"optimise", R"(
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
  let rate = hyper_at(0u);
  let w = w_at(r * p.w_s + col);
  let g = g_at(at * p.g_s + col) * scale;
  var decayed = g + p.decay * w;
  var y = w;
  var m = 0.0;
  var v = 0.0;
  if (has_m) { m = m_at(r * p.m_s_ + col); }
  if (has_v) { v = v_at(r * p.v_s_ + col); }
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
    default: {
      if (kind == 5u) {
        y = w - (rate * p.decay) * w;
        decayed = g;
      }
      m = p.beta1 * m + (1.0 - p.beta1) * decayed;
      v = p.beta2 * v + (1.0 - p.beta2) * (decayed * decayed);
      y = y - (rate * (m / hyper_at(1u))) / (sqrt(v / hyper_at(2u)) + p.eps);
    }
  }
  w_set(r * p.w_s + col, y);
  if (has_m) { m_set(r * p.m_s_ + col, m); }
  if (has_v) { v_set(r * p.v_s_ + col, v); }
}
)"};

}  // namespace

Status optimise(Frame& frame, const OptimiseArgs& args) {
  using enum OptimizerKind;
  const bool uses_v = args.kind == rmsprop || args.kind == adam || args.kind == adamw;
  const bool uses_m = args.kind != sgd && args.kind != rmsprop;
  return Call(frame, kOptimise)
      .update("w", args.p)
      .read("g", args.g)
      .update("m", uses_m ? args.m : Tensor{})
      .update("v", uses_v ? args.v : Tensor{})
      .read("hyper", args.hyper)
      .read("scale", args.scale)
      .ids("rows", args.rows)
      .value("cols", args.p.cols())
      .value("m_s_", args.m.row_stride)
      .value("v_s_", args.v.row_stride)
      .value("beta1", args.beta1)
      .value("beta2", args.beta2)
      .value("eps", args.eps)
      .value("decay", args.decay)
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(args.g.shape.count());
}

}  // namespace loom::webgpu::kernels
