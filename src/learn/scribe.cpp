#include "learn/scribe.hpp"

#include "learn/step/step_builder.hpp"

namespace loom::core {

Result<Tensor> TraceBuilder::number(float value) {
  const Tensor t = fresh(Shape{1, 1});
  LOOM_TRY(ops_.fill({t, value}));
  return t;
}

Result<Tensor> TraceBuilder::binary(const Tensor& a, const Tensor& b, BinaryKind kind) {
  const Tensor y = fresh(a.shape);
  LOOM_TRY(ops_.binary({a, b, y, kind}));
  return y;
}

Result<Tensor> TraceBuilder::binary(const Tensor& a, float b, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor value, number(b));
  return binary(a, value, kind);
}

Result<Tensor> TraceBuilder::unary(const Tensor& a, UnaryKind kind) {
  const Tensor y = fresh(a.shape);
  LOOM_TRY(ops_.unary({a, y, kind}));
  return y;
}

Status TraceBuilder::sum_of_squares(const Tensor& g, const Tensor& out) {
  const int64_t rows = g.rows();
  const Tensor sums = fresh(Shape{rows});
  LOOM_TRY(ops_.reduce({g, sums, ReduceKind::sum_squares}));
  return ops_.reduce({as_matrix(sums, 1, rows), out, ReduceKind::sum});
}

Result<Tensor> TraceBuilder::norm(const Tensor& g) {
  const Tensor squares = fresh(Shape{1, 1});
  LOOM_TRY(sum_of_squares(g, squares));
  return unary(squares, UnaryKind::sqrt);
}

Status TraceBuilder::guard(const Tensor& numbers, const Tensor& value, const Tensor& out) {
  LOOM_ASSIGN(const Tensor nothing, binary(value, cell(numbers, 0), BinaryKind::mul));
  return ops_.binary({nothing, cell(numbers, 1), out, BinaryKind::add});
}

}  // namespace loom::core
