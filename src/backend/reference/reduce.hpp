// Rule 4 of docs/numerics.md: a reduction over a row. There are 32 virtual lanes; lane j takes i =
// j mod 32, ascending. Lanes past the end of a short row keep the start value. The upper half is
// joined to the lower, 32 -> 16 -> 8 -> 4 -> 2 -> 1. Rows longer than 4096 are cut into blocks of
// 4096, whose results are joined in order, starting from the first. T is float or double.
#pragma once

#include <cstdint>

#include "ops/fmath.hpp"

namespace loom::core::reference {

constexpr int64_t kReduceBlock = 4096;
constexpr int64_t kVirtualLanes = 32;

// Joins value(i) for i in [0, n); returns `start` if n is 0.
template <class T, class Value, class Join>
T reduce_row(int64_t n, T start, Value value, Join join) {
  T total = start;
  for (int64_t begin = 0; begin < n; begin += kReduceBlock) {
    const int64_t end = n - begin < kReduceBlock ? n : begin + kReduceBlock;
    T lanes[kVirtualLanes];
    for (T& lane : lanes) lane = start;
    for (int64_t i = begin; i < end; ++i) {
      T& lane = lanes[(i - begin) % kVirtualLanes];
      lane = join(lane, value(i));
    }
    for (int64_t half = kVirtualLanes / 2; half >= 1; half /= 2) {
      for (int64_t j = 0; j < half; ++j) lanes[j] = join(lanes[j], lanes[j + half]);
    }
    total = begin == 0 ? lanes[0] : join(total, lanes[0]);
  }
  return total;
}

template <class T, class Value>
T reduce_sum(int64_t n, Value value) {
  return reduce_row(n, T{}, value, [](T a, T b) { return a + b; });
}

// If one of the two is a NaN, the second operand is the result, as in fmath::max.
template <class T, class Value>
T reduce_max(int64_t n, Value value) {
  return reduce_row(n, -static_cast<T>(__builtin_inff()), value,
                    [](T a, T b) { return fmath::max<T>(a, b); });
}

}  // namespace loom::core::reference
