// norm and reduce: row-wise sums under rule 4 of docs/numerics.md.
// A row of x is cut into `segments` equal parts of n values; gamma and beta hold n values shared by
// the parts, or one per position of the row.
#include "backend/reference/kernels.hpp"
#include "backend/reference/reduce.hpp"

namespace loom::reference {
namespace {

void rms_norm(const float* x, const float* gamma, float eps, int64_t n, float* y) {
  const float mean_square =
      reduce_sum(n, [&](int64_t i) { return x[i] * x[i]; }) / static_cast<float>(n);
  const float inverse = 1.0f / __builtin_sqrtf(mean_square + eps);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i] * inverse;
    if (gamma != nullptr) y[i] = y[i] * gamma[i];
  }
}

void layer_norm(const float* x, const float* gamma, const float* beta, float eps, int64_t n,
                float* y) {
  const float count = static_cast<float>(n);
  const float mean = reduce_sum(n, [&](int64_t i) { return x[i]; }) / count;
  const float variance =
      reduce_sum(n, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const float inverse = 1.0f / __builtin_sqrtf(variance + eps);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - mean) * inverse;
    if (gamma != nullptr) y[i] = y[i] * gamma[i];
    if (beta != nullptr) y[i] = y[i] + beta[i];
  }
}

// The part of gamma or beta that belongs to the segment starting at `begin`; null when absent.
const float* parameter(const Tensor& t, int64_t begin, int64_t row) {
  if (t.empty()) return nullptr;
  return t.shape.count() == row ? t.f32() + begin : t.f32();
}

float reduced(ReduceKind kind, const float* x, int64_t n) {
  switch (kind) {
    case ReduceKind::sum: return reduce_sum(n, [&](int64_t i) { return x[i]; });
    case ReduceKind::mean:
      return reduce_sum(n, [&](int64_t i) { return x[i]; }) / static_cast<float>(n);
    case ReduceKind::sum_squares: return reduce_sum(n, [&](int64_t i) { return x[i] * x[i]; });
    case ReduceKind::max: return reduce_max(n, [&](int64_t i) { return x[i]; });
  }
  return 0.0f;
}

}  // namespace

void norm(const NormArgs& args, const Lane& lane) {
  const int64_t row = args.x.cols();
  const int64_t n = row / args.segments;
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t begin = 0; begin < row; begin += n) {
      const float* x = args.x.f32_row(r) + begin;
      const float* gamma = parameter(args.gamma, begin, row);
      const float* beta = parameter(args.beta, begin, row);
      float* y = args.y.f32_row(r) + begin;
      if (args.kind == NormKind::rms) {
        rms_norm(x, gamma, args.eps, n, y);
      } else {
        layer_norm(x, gamma, beta, args.eps, n, y);
      }
    }
  }
}

void reduce(const ReduceArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    args.y.f32()[r] = reduced(args.kind, args.x.f32_row(r), args.x.cols());
  }
}

}  // namespace loom::reference
