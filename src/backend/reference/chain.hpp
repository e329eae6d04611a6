// Rule 2 of docs/numerics.md: sums of products. k is cut into chunks of 256. Each chunk is one
// chain s = fused(a, b, s) from +0 with k ascending. The chunk sums are added in ascending order,
// from +0. An empty sum is +0. T, float or double, is the compute type; x may be narrower.
#pragma once

#include <cstdint>

#include "base/numbers/fma.hpp"

namespace loom::core::reference {

constexpr int64_t kChunk = 256;

// One step of a chain: the product a * b. A sum skips a term with two zeros.
template <class T>
struct Factors {
  T a, b;
};

// The sum of the products term(k), which are Factors, for k in [0, n).
template <class T, class Term>
T chained(int64_t n, Term term) {
  T total{};
  for (int64_t k0 = 0; k0 < n; k0 += kChunk) {
    const int64_t end = n - k0 < kChunk ? n : k0 + kChunk;
    T sum{};
    for (int64_t k = k0; k < end; ++k) {
      const Factors<T> product = term(k);
      sum = fused(product.a, product.b, sum);
    }
    total = total + sum;
  }
  return total;
}

// Dot product of x[0, n) with the values that load(k0, count, out) writes for k in [k0, k0 +
// count).
template <class T, class X, class Load>
T chunked_dot(const X* x, int64_t n, Load load) {
  T w[kChunk];
  return chained<T>(n, [&](int64_t k) {
    if (k % kChunk == 0) load(k, n - k < kChunk ? n - k : kChunk, w);
    return Factors<T>{static_cast<T>(x[k]), w[k % kChunk]};
  });
}

}  // namespace loom::core::reference
