// Values whose last axes are what an operator works along: moved there when they are elsewhere.
#pragma once

#include <cmath>

#include "base/numbers/dmath.hpp"
#include "onnx/operators/elementwise.hpp"
#include "onnx/operators/functions.hpp"

namespace loom::core::evaluate {

// x with `axes` after all others, both in ascending order; `order` says where each axis came from.
Result<Value> axes_last(const Call& c, const Value& x, const std::vector<int>& axes,
                        std::vector<int>& order);
// The inverse: a value in that order as the axes of x were.
Result<Value> axes_back(const Call& c, const Value& y, const std::vector<int>& order);

// y[row] = f(row of n values) over the last `n` values of x.
template <class T, class R, class F>
void each_row(const Call& c, const Value& x, int64_t n, R* y, F f) {
  const T* from = x.data<T>();
  const int64_t rows = n == 0 ? 0 : x.count() / n;
  c.parallel(rows, 1.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) y[r] = f(from + r * n, n);
  });
}

// The sum of f(x[i]) in A: eight partial sums, lane i mod 8, folded in order.
template <class A, class T, class F>
A folded_sum(const T* x, int64_t n, F f) {
  A lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t k = 0; k < 8; ++k) lane[k] += f(static_cast<A>(x[i + k]));
  }
  for (; i < n; ++i) lane[i % 8] += f(static_cast<A>(x[i]));
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// The largest or the least of n values, the last NaN if there is one.
template <class T>
T extreme_of(const T* x, int64_t n, bool largest) {
  T best = x[0];
  for (int64_t i = 1; i < n; ++i) {
    const bool better = largest ? x[i] > best : x[i] < best;
    if (better || x[i] != x[i]) best = x[i];
  }
  return best;
}

// log(sum exp(x[i])), `most` being the largest of them.
double log_sum_exp(const double most, const auto* x, int64_t n) {
  if (std::isinf(most)) return most;
  const double sum = folded_sum<double>(x, n, [=](double v) { return dmath::exp(v - most); });
  return most + log_of(sum);
}

// Extents without `axes`, or with 1 in their places.
Dims without(const Dims& dims, const std::vector<int>& axes, bool keep);

// Softmax of each run of the last `n` values, x being f32 or f64.
Result<Value> softmax_rows(const Call& c, const Value& x, int64_t n);

}  // namespace loom::core::evaluate
