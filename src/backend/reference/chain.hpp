// Rule 2 of docs/numerics.md: a long dot product. k is cut into chunks of 256; each chunk is one
// chain s = s + a*b from +0 with k ascending; the chunk sums are added in ascending order, the
// first one being the start value. No terms: +0. T is the type everything is computed in, float or
// double; x may be narrower.
#pragma once

#include <cstdint>

namespace loom::reference {

constexpr int64_t kChunk = 256;

// Dot product of x[0, n) with the values that load(k0, count, out) writes for k in [k0, k0 +
// count).
template <class T, class X, class Load>
T chunked_dot(const X* x, int64_t n, Load load) {
  T total{};
  for (int64_t k0 = 0; k0 < n; k0 += kChunk) {
    const int64_t count = n - k0 < kChunk ? n - k0 : kChunk;
    T w[kChunk];
    load(k0, count, w);
    T sum{};
    for (int64_t k = 0; k < count; ++k) sum = sum + static_cast<T>(x[k0 + k]) * w[k];
    total = k0 == 0 ? sum : total + sum;
  }
  return total;
}

}  // namespace loom::reference
