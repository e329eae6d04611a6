// Operators value by value, as other families use them. See unary.cpp and pairs.cpp.
#pragma once

#include "onnx/operators/operator.hpp"

namespace loom::core::evaluate {

// y = f(x) for floats: in f32 or f64, by the kernel of `kind` where there is one for f32.
Result<Value> map_real(const Call& c, const Value& x, double (*f)(double));
Result<Value> map_kernel(const Call& c, const Value& x, UnaryKind kind);

// y[i] = f(a[i], b[i]) with broadcasting; R is what f gives.
template <class T, class R, class F>
void map_pairs(const Call& c, const Value& a, const Value& b, Value& y, F f) {
  const SideBySide<3> walk(
      y.dims, {broadcast_steps(a.dims, y.dims), broadcast_steps(b.dims, y.dims), steps_of(y.dims)});
  const T* pa = a.data<T>();
  const T* pb = b.data<T>();
  R* py = y.data<R>();
  walk.run_all(c, 1.0, [&](const auto& place, int64_t n, const auto& step) {
    const T* x = pa + place[0];
    const T* z = pb + place[1];
    R* out = py + place[2];
    if (step[0] == 1 && step[1] == 1) {
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], z[i]);
    } else if (step[0] == 1 && step[1] == 0) {
      const T second = *z;
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], second);
    } else if (step[0] == 0 && step[1] == 1) {
      const T first = *x;
      for (int64_t i = 0; i < n; ++i) out[i] = f(first, z[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i * step[0]], z[i * step[1]]);
    }
  });
}

// An Error if one of `numbers`, which are f64, is beyond the whole type `to`.
Status fits_whole_type(const Call& c, const Value& numbers, OnnxType to);

// The shape that inputs a and b have together. Errors: they do not fit.
Result<Dims> shape_of_both(const Call& c, const Dims& a, const Dims& b);

enum class Pair : uint8_t { add, sub, mul, div, mod, remainder, max, min };
// a op b of one computing type.
Result<Value> combine(const Call& c, Pair op, const Value& a, const Value& b);

}  // namespace loom::core::evaluate
