// unary, binary, gated, fill: one value at a time, formulas from ops/fmath.hpp and
// ops/activation.hpp. Lanes share the rows. The result may be written over an operand of its shape.
#include "backend/reference/kernels.hpp"
#include "ops/activation.hpp"

namespace loom::reference {
namespace {

static_assert(static_cast<int>(UnaryKind::linear) == static_cast<int>(Activation::linear) &&
                  static_cast<int>(UnaryKind::sigmoid) == static_cast<int>(Activation::sigmoid),
              "the first kinds of unary are the activations, in their order");

float unary_value(UnaryKind kind, float x) {
  switch (kind) {
    case UnaryKind::exp: return fmath::exp<float>(x);
    case UnaryKind::log: return fmath::log<float>(x);
    case UnaryKind::sqrt: return __builtin_sqrtf(x);
    case UnaryKind::neg: return -x;
    case UnaryKind::abs: return fmath::abs<float>(x);
    case UnaryKind::softplus: return fmath::softplus<float>(x);
    default: return activate<float>(static_cast<Activation>(kind), x);
  }
}

float binary_value(BinaryKind kind, float a, float b) {
  switch (kind) {
    case BinaryKind::add: return a + b;
    case BinaryKind::sub: return a - b;
    case BinaryKind::mul: return a * b;
    case BinaryKind::div: return a / b;
    case BinaryKind::max: return fmath::max<float>(a, b);
    case BinaryKind::min: return fmath::min<float>(a, b);
  }
  return 0.0f;
}

}  // namespace

void unary(const UnaryArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x.f32_row(r);
    float* y = args.y.f32_row(r);
    for (int64_t i = 0; i < args.x.cols(); ++i) y[i] = unary_value(args.kind, x[i]);
  }
}

void binary(const BinaryArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.a.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* a = args.a.f32_row(r);
    const float* b = args.b.f32_row(args.b.rows() == 1 ? 0 : r);
    float* y = args.y.f32_row(r);
    for (int64_t i = 0; i < args.a.cols(); ++i) y[i] = binary_value(args.kind, a[i], b[i]);
  }
}

void gated(const GatedArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.gate.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* gate = args.gate.f32_row(r);
    const float* up = args.up.f32_row(r);
    float* y = args.y.f32_row(r);
    for (int64_t i = 0; i < args.gate.cols(); ++i)
      y[i] = activate<float>(args.activation, gate[i]) * up[i];
  }
}

void fill(const FillArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.y.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* y = args.y.f32_row(r);
    for (int64_t i = 0; i < args.y.cols(); ++i) y[i] = args.value;
  }
}

}  // namespace loom::reference
