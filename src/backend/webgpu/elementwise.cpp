// unary, binary, gated, fill: one invocation per value.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {
namespace {

constexpr Kernel kUnary{"unary", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  let x = x_at(r * p.x_s + c);
  var y = 0.0;
  switch (kind) {
    case 13u: { y = loom_exp(x); }
    case 14u: { y = loom_log(x); }
    case 15u: { y = sqrt(x); }
    case 16u: { y = -x; }
    case 17u: { y = abs(x); }
    case 18u: { y = x * x; }
    case 19u: { y = 1.0 / x; }
    case 20u: { y = select(0.0, 1.0, x >= 0.0); }
    default: { y = activate(kind, x); }
  }
  y_set(r * p.y_s + c, y);
}
)"};

constexpr Kernel kBinary{"binary", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  let a = a_at(r * p.a_s + c);
  let b = b_at(r * p.b_row + c * p.b_col);
  var y = 0.0;
  switch (kind) {
    case 0u: { y = a + b; }
    case 1u: { y = a - b; }
    case 2u: { y = a * b; }
    case 3u: { y = a / b; }
    case 4u: { y = select(b, a, a > b); }
    default: { y = select(b, a, a < b); }
  }
  y_set(r * p.y_s + c, y);
}
)"};

constexpr Kernel kGated{"gated", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  y_set(r * p.y_s + c, activate(kind, gate_at(r * p.gate_s + c)) * up_at(r * p.up_s + c));
}
)"};

constexpr Kernel kFill{"fill", R"(
fn run(i: u32) {
  y_set(i / p.cols * p.y_s + i % p.cols, p.v);
}
)"};

}  // namespace

Status unary(Frame& frame, const UnaryArgs& args) {
  return Call(frame, kUnary)
      .read("x", args.x)
      .write("y", args.y)
      .value("cols", args.y.cols())
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(args.y.shape.count());
}

Status binary(Frame& frame, const BinaryArgs& args) {
  const bool one_row = args.b.rows() == 1 && args.a.rows() != 1;
  const bool one_col = args.b.cols() == 1 && args.a.cols() != 1;
  return Call(frame, kBinary)
      .read("a", args.a)
      .read("b", args.b)
      .write("y", args.y)
      .value("cols", args.y.cols())
      .value("b_row", one_row ? 0 : args.b.row_stride)
      .value("b_col", int64_t{one_col ? 0 : 1})
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(args.y.shape.count());
}

Status gated(Frame& frame, const GatedArgs& args) {
  return Call(frame, kGated)
      .read("gate", args.gate)
      .read("up", args.up)
      .write("y", args.y)
      .value("cols", args.y.cols())
      .constant("kind", static_cast<int64_t>(args.activation))
      .items(args.y.shape.count());
}

Status fill(Frame& frame, const FillArgs& args) {
  return Call(frame, kFill)
      .write("y", args.y)
      .value("cols", args.y.cols())
      .value("v", args.value)
      .items(args.y.shape.count());
}

}  // namespace loom::webgpu::kernels
