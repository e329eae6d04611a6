// Shorthands for small tensors of a recording. Private to the room.
#pragma once

#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {

class TraceBuilder {
 public:
  explicit TraceBuilder(Trace& trace) : trace_(trace), ops_(trace) {}
  Recorder& ops() { return ops_; }
  Tensor fresh(const Shape& shape) { return trace_.fresh(shape); }
  Result<Tensor> number(float value);
  Result<Tensor> binary(const Tensor& a, const Tensor& b, BinaryKind kind);
  Result<Tensor> binary(const Tensor& a, float b, BinaryKind kind);
  Result<Tensor> unary(const Tensor& a, UnaryKind kind);
  // Sum of squares of a matrix into one number: row by row, then over the rows.
  Status sum_of_squares(const Tensor& g, const Tensor& out);
  // The root of that, [1, 1].
  Result<Tensor> norm(const Tensor& g);
  // 1 when `value` is finite, else NaN: 1 + 0 * value, to `out`. numbers: 0 and 1.
  Status guard(const Tensor& numbers, const Tensor& value, const Tensor& out);

 private:
  Trace& trace_;
  Recorder ops_;
};

}  // namespace loom::core
