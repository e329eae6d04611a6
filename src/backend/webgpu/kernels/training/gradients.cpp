// unary_dx, gated_dx: value by value as in elementwise.cpp. The derivatives are those of
// ops/gradients/activation_dx.hpp. The sign of a value is read from its bits: a comparison may
// flush a subnormal to 0 and put it on the wrong side of a kink.
#include "backend/webgpu/kernels/elementwise.hpp"
#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu {
namespace {

constexpr std::string_view kActivateDx = R"(
fn above_0(x: f32) -> bool { return bitcast<i32>(x) > 0; }
fn below_0(x: f32) -> bool { return bitcast<u32>(x) > 0x80000000u; }
fn gelu_tanh_dx(wide: f32) -> f32 {
  let x = clamp(wide, -40.0, 40.0);
  let z = x * x;
  let s = loom_sigmoid(1.59576912160573071 * (x + 0.044715 * (z * x)));
  let dv = 1.59576912160573071 * (1.0 + 0.134145 * z);
  return s * (1.0 + (x * dv) * (1.0 - s));
}
fn gelu_erf_dx(wide: f32) -> f32 {
  let x = clamp(wide, -40.0, 40.0);
  return normal_cdf(x) + x * (0.39894228040143268 * exp_half_square(x));
}
fn mish_dx(x: f32) -> f32 {
  let w = loom_exp(min(x, 20.0));
  let n = w * (w + 2.0);
  let m = n + 2.0;
  return select(n / m + x * ((4.0 * (w * (w + 1.0))) / (m * m)), 1.0, x > 20.0);
}
fn hard_swish_dx(x: f32) -> f32 {
  return select(select(x / 3.0 + 0.5, 1.0, x >= 3.0), 0.0, x <= -3.0);
}
fn activate_dx(kind: u32, x: f32) -> f32 {
  switch (kind) {
    case 1u: { return select(0.0, 1.0, above_0(x)); }
    case 2u: { return select(0.01, 1.0, above_0(x)); }
    case 3u: { return select(0.0, x + x, above_0(x)); }
    case 4u: {
      let s = loom_sigmoid(x);
      return s * (1.0 + x * (1.0 - s));
    }
    case 5u: { return gelu_tanh_dx(x); }
    case 6u: { return gelu_erf_dx(x); }
    case 7u: {
      let t = loom_tanh(x);
      return 1.0 - t * t;
    }
    case 8u: {
      let s = loom_sigmoid(x);
      return s * (1.0 - s);
    }
    case 9u: { return mish_dx(x); }
    case 10u: { return loom_sigmoid(x); }
    case 11u: { return select(loom_exp(x), 1.0, above_0(x)); }
    case 12u: { return hard_swish_dx(x); }
    case 13u: { return loom_exp(x); }
    case 14u: { return 1.0 / x; }
    case 15u: { return 0.5 / sqrt(x); }
    case 16u: { return -1.0; }
    case 17u: { return select(select(0.0, -1.0, below_0(x)), 1.0, above_0(x)); }
    case 18u: { return x + x; }
    case 19u: {
      let r = 1.0 / x;
      return -(r * r);
    }
    case 20u: { return 0.0; }
    default: { return 1.0; }
  }
}
)";

// Derivatives from y = f(x).
constexpr std::string_view kActivateDxFromOutput = R"(
fn above_0(x: f32) -> bool { return bitcast<i32>(x) > 0; }
fn activate_dx(kind: u32, y: f32) -> f32 {
  switch (kind) {
    case 0u: { return 1.0; }
    case 1u: { return select(0.0, 1.0, above_0(y)); }
    case 2u: { return select(0.01, 1.0, above_0(y)); }
    case 7u: { return 1.0 - y * y; }
    case 8u: { return y * (1.0 - y); }
    case 13u: { return y; }
    case 15u: { return 0.5 / y; }
    case 19u: { return -(y * y); }
    default: { return 0.0; }
  }
}
)";

constexpr Kernel kUnaryDx{"unary_dx", R"(
fn run(i: u32) {
  var x: array<f32, each>;
  var dy: array<f32, each>;
  for (var j = 0u; j < each; j++) {
    x[j] = x_at(place(spot(i, j), p.x_s));
    dy[j] = dy_at(place(spot(i, j), p.dy_s));
  }
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) { dx_set(place(spot(i, j), p.dx_s), dy[j] * activate_dx(kind, x[j])); }
  }
}
)"};

constexpr Kernel kGatedDx{"gated_dx", R"(
fn run(i: u32) {
  var gate: array<f32, each>;
  var up: array<f32, each>;
  var dy: array<f32, each>;
  for (var j = 0u; j < each; j++) {
    gate[j] = gate_at(place(spot(i, j), p.gate_s));
    up[j] = up_at(place(spot(i, j), p.up_s));
    dy[j] = dy_at(place(spot(i, j), p.dy_s));
  }
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) {
      dgate_set(place(spot(i, j), p.dgate_s), (dy[j] * up[j]) * activate_dx(kind, gate[j]));
      dup_set(place(spot(i, j), p.dup_s), dy[j] * activate(kind, gate[j]));
    }
  }
}
)"};

}  // namespace

std::string_view slope_text(bool from_output) {
  return from_output ? kActivateDxFromOutput : kActivateDx;
}

namespace kernels {

Status unary_dx(Frame& frame, const UnaryDxArgs& args) {
  Call call(frame, kUnaryDx);
  return flat(call, {&args.x, &args.dy, &args.dx})
      .text(slope_text(args.from_output))
      .read("x", args.x)
      .read("dy", args.dy)
      .write("dx", args.dx)
      .constant("kind", static_cast<int64_t>(args.kind))
      .spread(args.x.shape.count());
}

Status gated_dx(Frame& frame, const GatedDxArgs& args) {
  Call call(frame, kGatedDx);
  return flat(call, {&args.gate, &args.up, &args.dy, &args.dgate, &args.dup})
      .text(kActivateDx)
      .read("gate", args.gate)
      .read("up", args.up)
      .read("dy", args.dy)
      .write("dgate", args.dgate)
      .write("dup", args.dup)
      .constant("kind", static_cast<int64_t>(args.activation))
      .spread(args.gate.shape.count());
}

}  // namespace kernels
}  // namespace loom::core::webgpu
