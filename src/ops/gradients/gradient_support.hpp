// Helpers of gradient rules. Private to the room.
#pragma once

#include "ops/gradients/gradient.hpp"

namespace loom::core {

// Whether the result determines the derivative of an activation, so that its input need not be kept
// (UnaryDxArgs::from_output).
constexpr bool result_tells(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::linear:
    case UnaryKind::relu:
    case UnaryKind::leaky_relu:
    case UnaryKind::tanh:
    case UnaryKind::sigmoid:
    case UnaryKind::exp:
    case UnaryKind::sqrt:
    case UnaryKind::reciprocal: return true;
    default: return false;
  }
}

// The gradient before a fused activation, from the gradient after it.
inline Result<Tensor> before_activation(Differentiator& d, Activation kind, const Tensor& y,
                                        const Tensor& dy) {
  if (kind == Activation::linear || !d.has_slopes()) return dy;
  const Tensor dz = d.fresh(y.shape);
  LOOM_TRY(d.ops().unary_dx({y, dy, dz, static_cast<UnaryKind>(kind), true}));
  return dz;
}

// x op f, x of the shape of the result, into a fresh tensor.
inline Result<Tensor> product(Differentiator& d, const Tensor& x, const Tensor& f,
                              BinaryKind kind) {
  const Tensor out = d.fresh(x.shape);
  LOOM_TRY(d.ops().binary({x, f, out, kind}));
  return out;
}

// The same memory as a matrix of other extents; t is contiguous.
inline Tensor matrix_over(Tensor t, int64_t rows, int64_t cols) {
  t.shape = Shape{rows, cols};
  t.row_stride = cols;
  return t;
}

}  // namespace loom::core
