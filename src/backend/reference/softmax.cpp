// softmax, row by row: m = max(x * scale), e = exp(x * scale - m), y = e / sum(e), max and sum
// under rule 4 of docs/numerics.md. A row of only -inf (everything masked) gives zeros, not NaN.
#include "backend/reference/kernels.hpp"
#include "backend/reference/reduce.hpp"

namespace loom::core::reference {

template <class T>
void softmax_row(const T* x, float scale, int64_t n, T* y) {
  const T largest = reduce_max<T>(n, [&](int64_t i) { return x[i] * scale; });
  if (largest == -static_cast<T>(__builtin_inff())) {
    for (int64_t i = 0; i < n; ++i) y[i] = T{};
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = fmath::exp<T>(x[i] * scale - largest);
  const T sum = reduce_sum<T>(n, [&](int64_t i) { return y[i]; });
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
}

template void softmax_row(const float* x, float scale, int64_t n, float* y);
template void softmax_row(const double* x, float scale, int64_t n, double* y);

template <class T>
void softmax(const SoftmaxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    softmax_row<T>(args.x.row<T>(r), args.scale, args.x.cols(), args.y.row<T>(r));
  }
}
LOOM_REFERENCE_BODY(softmax, SoftmaxArgs);

}  // namespace loom::core::reference
