// unary_dx, gated_dx: one invocation per value. The derivatives are those of
// ops/activation_dx.hpp. On which side of 0 a value lies is read off its bits: a subnormal, which
// a comparison may take for 0, is on its own side of a kink.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {
namespace {

constexpr std::string_view kSides = R"(
fn above_0(x: f32) -> bool { return bitcast<i32>(x) > 0; }
fn below_0(x: f32) -> bool { return bitcast<u32>(x) > 0x80000000u; }
)";

constexpr std::string_view kActivateDx = R"(
fn gelu_tanh_dx(wide: f32) -> f32 {
  let x = clamp(wide, -10.0, 10.0);
  let z = x * x;
  let t = loom_tanh(0.79788456080286536 * (x + 0.044715 * (z * x)));
  let du = 0.79788456080286536 * (1.0 + 0.134145 * z);
  return 0.5 * (1.0 + t) + ((0.5 * x) * (1.0 - t * t)) * du;
}
fn gelu_erf_dx(wide: f32) -> f32 {
  let x = clamp(wide, -40.0, 40.0);
  let density = 0.39894228040143268 * loom_exp((x * x) * -0.5);
  return 0.5 * (1.0 + loom_erf(x * 0.70710678118654752)) + x * density;
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

// From y = f(x).
constexpr std::string_view kActivateDxFromOutput = R"(
fn activate_dx(kind: u32, y: f32) -> f32 {
  switch (kind) {
    case 0u: { return 1.0; }
    case 1u: { return select(0.0, 1.0, above_0(y)); }
    case 2u: { return select(0.01, 1.0, above_0(y)); }
    case 7u: { return 1.0 - y * y; }
    case 8u: { return y * (1.0 - y); }
    case 11u: { return select(y + 1.0, 1.0, above_0(y)); }
    case 13u: { return y; }
    case 15u: { return 0.5 / y; }
    case 19u: { return -(y * y); }
    default: { return 0.0; }
  }
}
)";

constexpr Kernel kUnaryDx{"unary_dx", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  dx_set(r * p.dx_s + c, dy_at(r * p.dy_s + c) * activate_dx(kind, x_at(r * p.x_s + c)));
}
)"};

constexpr Kernel kGatedDx{"gated_dx", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  let gate = gate_at(r * p.gate_s + c);
  let up = up_at(r * p.up_s + c);
  let dy = dy_at(r * p.dy_s + c);
  dgate_set(r * p.dgate_s + c, (dy * up) * activate_dx(kind, gate));
  dup_set(r * p.dup_s + c, dy * activate(kind, gate));
}
)"};

}  // namespace

Status unary_dx(Frame& frame, const UnaryDxArgs& args) {
  return Call(frame, kUnaryDx)
      .text(kSides)
      .text(args.from_output ? kActivateDxFromOutput : kActivateDx)
      .read("x", args.x)
      .read("dy", args.dy)
      .write("dx", args.dx)
      .value("cols", args.x.cols())
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(args.x.shape.count());
}

Status gated_dx(Frame& frame, const GatedDxArgs& args) {
  return Call(frame, kGatedDx)
      .text(kSides)
      .text(kActivateDx)
      .read("gate", args.gate)
      .read("up", args.up)
      .read("dy", args.dy)
      .write("dgate", args.dgate)
      .write("dup", args.dup)
      .value("cols", args.gate.cols())
      .constant("kind", static_cast<int64_t>(args.activation))
      .items(args.gate.shape.count());
}

}  // namespace loom::webgpu::kernels
