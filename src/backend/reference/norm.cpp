// norm and reduce: row-wise sums under rule 4 of docs/numerics.md.
// A row of x is cut into `segments` equal parts of n values; gamma and beta hold n values shared by
// the parts, or one per position of the row.
#include "backend/reference/kernels.hpp"
#include "backend/reference/reduce.hpp"

namespace loom::core::reference {
namespace {

template <class T>
void rms_norm(const T* x, const T* gamma, float eps, int64_t n, T* y) {
  const T mean_square =
      reduce_sum<T>(n, [&](int64_t i) { return x[i] * x[i]; }) / static_cast<T>(n);
  const T inverse = T{1} / fmath::sqrt<T>(mean_square + eps);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i] * inverse;
    if (gamma != nullptr) y[i] = y[i] * gamma[i];
  }
}

template <class T>
void layer_norm(const T* x, const T* gamma, const T* beta, float eps, int64_t n, T* y) {
  const T count = static_cast<T>(n);
  const T mean = reduce_sum<T>(n, [&](int64_t i) { return x[i]; }) / count;
  const T variance =
      reduce_sum<T>(n, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const T inverse = T{1} / fmath::sqrt<T>(variance + eps);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - mean) * inverse;
    if (gamma != nullptr) y[i] = y[i] * gamma[i];
    if (beta != nullptr) y[i] = y[i] + beta[i];
  }
}

// The part of gamma or beta that belongs to the segment starting at `begin`; null when absent.
template <class T>
const T* parameter(const Tensor& t, int64_t begin, int64_t row) {
  if (t.empty()) return nullptr;
  return t.shape.count() == row ? t.values<T>() + begin : t.values<T>();
}

template <class T>
T reduced(ReduceKind kind, const T* x, int64_t n) {
  switch (kind) {
    case ReduceKind::sum: return reduce_sum<T>(n, [&](int64_t i) { return x[i]; });
    case ReduceKind::mean:
      return reduce_sum<T>(n, [&](int64_t i) { return x[i]; }) / static_cast<T>(n);
    case ReduceKind::sum_squares: return reduce_sum<T>(n, [&](int64_t i) { return x[i] * x[i]; });
    case ReduceKind::max: return reduce_max<T>(n, [&](int64_t i) { return x[i]; });
  }
  return T{};
}

}  // namespace

template <class T>
void norm(const NormArgs& args, const Lane& lane) {
  const int64_t row = args.x.cols();
  const int64_t n = row / args.segments;
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t begin = 0; begin < row; begin += n) {
      const T* x = args.x.row<T>(r) + begin;
      const T* gamma = parameter<T>(args.gamma, begin, row);
      const T* beta = parameter<T>(args.beta, begin, row);
      T* y = args.y.row<T>(r) + begin;
      if (args.kind == NormKind::rms) {
        rms_norm<T>(x, gamma, args.eps, n, y);
      } else {
        layer_norm<T>(x, gamma, beta, args.eps, n, y);
      }
    }
  }
}
LOOM_REFERENCE_BODY(norm, NormArgs);

template <class T>
void reduce(const ReduceArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    args.y.values<T>()[r] = reduced<T>(args.kind, args.x.row<T>(r), args.x.cols());
  }
}
LOOM_REFERENCE_BODY(reduce, ReduceArgs);

}  // namespace loom::core::reference
