// unary, binary, gated, fill: one value at a time, formulas from ops/fmath.hpp and
// ops/activation.hpp. Lanes share the rows. The result may overwrite an operand of the same shape.
#include "backend/reference/kernels.hpp"
#include "ops/activation.hpp"

namespace loom::core::reference {
namespace {

template <class T>
T unary_value(UnaryKind kind, T x) {
  switch (kind) {
    case UnaryKind::exp: return fmath::exp<T>(x);
    case UnaryKind::log: return fmath::log<T>(x);
    case UnaryKind::sqrt: return fmath::sqrt<T>(x);
    case UnaryKind::neg: return -x;
    case UnaryKind::abs: return fmath::abs<T>(x);
    case UnaryKind::square: return x * x;
    case UnaryKind::reciprocal: return T{1} / x;
    case UnaryKind::step: return x >= T{} ? T{1} : T{};
    default: return activate<T>(static_cast<Activation>(kind), x);
  }
}

template <class T>
T binary_value(BinaryKind kind, T a, T b) {
  switch (kind) {
    case BinaryKind::add: return a + b;
    case BinaryKind::sub: return a - b;
    case BinaryKind::mul: return a * b;
    case BinaryKind::div: return a / b;
    case BinaryKind::max: return fmath::max<T>(a, b);
    case BinaryKind::min: return fmath::min<T>(a, b);
  }
  return T{};
}

}  // namespace

template <class T>
void unary(const UnaryArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* x = args.x.row<T>(r);
    T* y = args.y.row<T>(r);
    for (int64_t i = 0; i < args.x.cols(); ++i) y[i] = unary_value(args.kind, x[i]);
  }
}
LOOM_REFERENCE_BODY(unary, UnaryArgs);

template <class T>
void binary(const BinaryArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.a.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* a = args.a.row<T>(r);
    const T* b = args.b.row<T>(args.b.rows() == 1 ? 0 : r);
    const int64_t step = args.b.cols() == 1 ? 0 : 1;
    T* y = args.y.row<T>(r);
    for (int64_t i = 0; i < args.a.cols(); ++i) y[i] = binary_value(args.kind, a[i], b[i * step]);
  }
}
LOOM_REFERENCE_BODY(binary, BinaryArgs);

template <class T>
void gated(const GatedArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.gate.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* gate = args.gate.row<T>(r);
    const T* up = args.up.row<T>(r);
    T* y = args.y.row<T>(r);
    for (int64_t i = 0; i < args.gate.cols(); ++i)
      y[i] = activate<T>(args.activation, gate[i]) * up[i];
  }
}
LOOM_REFERENCE_BODY(gated, GatedArgs);

template <class T>
void fill(const FillArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.y.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    T* y = args.y.row<T>(r);
    for (int64_t i = 0; i < args.y.cols(); ++i) y[i] = static_cast<T>(args.value);
  }
}
LOOM_REFERENCE_BODY(fill, FillArgs);

}  // namespace loom::core::reference
