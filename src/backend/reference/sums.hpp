// Rule 2 of docs/numerics.md over packed weights. Such sums run in double if the dtype of the
// weights requires it, and are rounded to the compute type once.
#pragma once

#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"

namespace loom::core::reference {

// A packed matrix as sums read it.
struct Packed {
  explicit Packed(const Tensor& t)
      : geometry(r16_geometry(t.dtype, t.shape[0], t.shape[1])), data(t.data) {}
  R16 geometry;
  const std::byte* data;
};

// sum(A{}) with A the type a sum over these weights runs in, rounded to T.
template <class T, class Sum>
T in_sum_type(const Packed& w, Sum sum) {
  if (dtype_info(w.geometry.dtype).compute == ComputeType::f64)
    return static_cast<T>(sum(double{}));
  return sum(T{});
}

// The sum over k of the products term(k, w[row, k]); the weight comes in the type of the sum.
template <class T, class Term>
T sum_over_row(const Packed& w, int64_t row, Term term) {
  return in_sum_type<T>(w, [&](auto zero) {
    using A = decltype(zero);
    A values[kChunk];
    const int64_t n = w.geometry.cols;
    return chained<A>(n, [&](int64_t k) {
      const int64_t left = n - k < kChunk ? n - k : kChunk;
      if (k % kChunk == 0) decode_row(w.geometry, w.data, row, k, left, values);
      return term(k, values[k % kChunk]);
    });
  });
}

// The sum over rows [first, first + count) of the products term(row, w[row, col]).
template <class T, class Term>
T sum_over_column(const Packed& w, int64_t col, int64_t first, int64_t count, Term term) {
  return in_sum_type<T>(w, [&](auto zero) {
    using A = decltype(zero);
    return chained<A>(count, [&](int64_t i) {
      A value;
      decode_row(w.geometry, w.data, first + i, col, 1, &value);
      return term(first + i, value);
    });
  });
}

// Stores old + value in an output that accumulates, else value.
template <class T>
void store(T& y, T value, bool accumulate) {
  y = accumulate ? y + value : value;
}

}  // namespace loom::core::reference
