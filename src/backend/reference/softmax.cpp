// softmax, row by row: m = max(x * scale), e = exp(x * scale - m), y = e / sum(e), max and sum
// under rule 4 of docs/numerics.md. A row that is -inf throughout (everything masked) gives zeros,
// not NaN.
#include "backend/reference/kernels.hpp"
#include "backend/reference/reduce.hpp"

namespace loom::reference {

void softmax_row(const float* x, float scale, int64_t n, float* y) {
  const float largest = reduce_max(n, [&](int64_t i) { return x[i] * scale; });
  if (largest == -__builtin_inff()) {
    for (int64_t i = 0; i < n; ++i) y[i] = 0.0f;
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = fmath::exp<float>(x[i] * scale - largest);
  const float sum = reduce_sum(n, [&](int64_t i) { return y[i]; });
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
}

void softmax(const SoftmaxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    softmax_row(args.x.f32_row(r), args.scale, args.x.cols(), args.y.f32_row(r));
  }
}

}  // namespace loom::reference
