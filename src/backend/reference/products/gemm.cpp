// gemm, matmul_dx and those of experts: products that training adds to matmul. Every output is one
// sum under rule 2 of docs/numerics.md. Lanes share the rows of y, and the columns of dx.
#include "backend/reference/sums.hpp"

namespace loom::core::reference {

template <class T>
void gemm(const GemmArgs& args, const Lane& lane) {
  const auto& [a, b, y, a_transposed, b_transposed, accumulate] = args;
  const int64_t depth = a_transposed ? a.rows() : a.cols();
  const LaneRange rows = lane.range(y.rows());
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    for (int64_t n = 0; n < y.cols(); ++n) {
      const T sum = chained<T>(depth, [&](int64_t k) {
        const T left =
            args.a_transposed ? args.a.template row<T>(k)[m] : args.a.template row<T>(m)[k];
        const T right =
            args.b_transposed ? args.b.template row<T>(n)[k] : args.b.template row<T>(k)[n];
        return Factors<T>{left, right};
      });
      store(y.template row<T>(m)[n], sum, accumulate);
    }
  }
}

template <class T>
void matmul_dx(const MatmulDxArgs& args, const Lane& lane) {
  const Packed w(args.w);
  const LaneRange cols = lane.range(args.dx.cols());
  for (int64_t k = cols.begin; k < cols.end; ++k) {
    for (int64_t r = 0; r < args.dx.rows(); ++r) {
      const T* dy = args.dy.row<T>(r);
      const T sum = sum_over_column<T>(w, k, 0, w.geometry.rows, [&](int64_t n, auto weight) {
        return Factors<decltype(weight)>{dy[n], weight};
      });
      store(args.dx.row<T>(r)[k], sum, args.accumulate);
    }
  }
}

template <class T>
void expert_matmul_dx(const ExpertMatmulDxArgs& args, const Lane& lane) {
  const Packed w(args.w);
  const int64_t width = args.dy.cols();
  const LaneRange cols = lane.range(args.dx.cols());
  for (int64_t e = 0; e < args.experts(); ++e) {
    for (int64_t r = args.starts.i32()[e]; r < args.starts.i32()[e + 1]; ++r) {
      const T* dy = args.dy.row<T>(r);
      for (int64_t k = cols.begin; k < cols.end; ++k) {
        const T sum = sum_over_column<T>(w, k, e * width, width, [&](int64_t n, auto weight) {
          return Factors<decltype(weight)>{dy[n - e * width], weight};
        });
        store(args.dx.row<T>(r)[k], sum, args.accumulate);
      }
    }
  }
}

template <class T>
void expert_matmul_dw(const ExpertMatmulDwArgs& args, const Lane& lane) {
  const int64_t width = args.dy.cols();
  const LaneRange rows = lane.range(args.dw.rows());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t e = row / width, first = args.starts.i32()[e];
    for (int64_t k = 0; k < args.dw.cols(); ++k) {
      const T sum = chained<T>(args.starts.i32()[e + 1] - first, [&](int64_t i) {
        return Factors<T>{args.dy.row<T>(first + i)[row % width], args.x.row<T>(first + i)[k]};
      });
      store(args.dw.row<T>(row)[k], sum, args.accumulate);
    }
  }
}

LOOM_REFERENCE_BODY(expert_matmul_dx, ExpertMatmulDxArgs);
LOOM_REFERENCE_BODY(expert_matmul_dw, ExpertMatmulDwArgs);
LOOM_REFERENCE_BODY(gemm, GemmArgs);
LOOM_REFERENCE_BODY(matmul_dx, MatmulDxArgs);

}  // namespace loom::core::reference
