// Products of matrices as other families use them. See products.cpp.
#pragma once

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {

// A matrix of constants, packed as the kernels of the backend read it.
struct PackedMatrix : Prepared {
  Buffer memory;
  Tensor w;
};
// From rows [rows][cols].
Result<std::shared_ptr<PackedMatrix>> pack_rows(const Call& c, const float* rows, int64_t count,
                                                int64_t cols);

// y [M, N] (+)= A B for one type of computing; A is [M, K], or [K, M] transposed, B likewise.
// Float: the kernels of the backend, which only record (flush the recorder).
struct Product {
  int64_t m, k, n;
  bool a_transposed = false, b_transposed = false;
};
Status multiply(const Call& c, const float* a, const float* b, float* y, const Product& p);
template <class T>
void multiply(const Call& c, const T* a, const T* b, T* y, const Product& p) {
  c.parallel(p.m, static_cast<double>(p.k * p.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = y + i * p.n;
      std::fill_n(row, p.n, T{});
      for (int64_t k = 0; k < p.k; ++k) {
        const T left = p.a_transposed ? a[k * p.m + i] : a[i * p.k + k];
        for (int64_t j = 0; j < p.n; ++j) {
          const T right = p.b_transposed ? b[j * p.k + k] : b[k * p.n + j];
          if constexpr (std::is_floating_point_v<T>) {
            row[j] = row[j] + left * right;
          } else {
            row[j] = static_cast<T>(static_cast<uint64_t>(row[j]) +
                                    static_cast<uint64_t>(left) * static_cast<uint64_t>(right));
          }
        }
      }
    }
  });
}

// A B over the last two axes, the others broadcast, as NumPy's matmul; a and b of one computing
// type.
Result<Value> matmul(const Call& c, const Value& a, const Value& b);
// The same with a constant second matrix of two axes.
Result<Value> matmul_packed(const Call& c, const Value& a, const PackedMatrix& b,
                            const Value* bias);

}  // namespace loom::core::evaluate
