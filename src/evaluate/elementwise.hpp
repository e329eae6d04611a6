// Operators value by value, as other families use them. See elementwise.cpp and pairs.cpp.
#pragma once

#include "evaluate/body.hpp"

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

// The shape that inputs a and b have together. Errors: they do not fit.
Result<Dims> shape_of_both(const Call& c, const Dims& a, const Dims& b);

enum class Pair : uint8_t { add, sub, mul, div, mod, remainder, max, min };
// a op b of one computing type.
Result<Value> combine(const Call& c, Pair op, const Value& a, const Value& b);

std::span<const Operator> unary_operators();
std::span<const Operator> pair_operators();
std::span<const Operator> cast_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> layout_operators();
std::span<const Operator> gather_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> order_operators();
std::span<const Operator> product_operators();
std::span<const Operator> einsum_operators();
std::span<const Operator> conv_operators();
std::span<const Operator> pool_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> image_operators();
std::span<const Operator> box_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> control_operators();
std::span<const Operator> sequence_operators();
std::span<const Operator> quantized_operators();
std::span<const Operator> ml_operators();
std::span<const Operator> tree_operators();
std::span<const Operator> svm_operators();

}  // namespace loom::core::evaluate
