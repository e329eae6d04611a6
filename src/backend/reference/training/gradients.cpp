// Gradients of the value-wise and row-wise ops, and the two sums over rows: reduce_cols and
// scatter_add_rows. Sums along a row or down a column follow rule 4 of docs/numerics.md. Every
// value of an operand is read before its location is written, so a gradient may overwrite dy or x.
#include "backend/reference/reduce.hpp"
#include "backend/reference/sums.hpp"
#include "ops/gradients/activation_dx.hpp"

namespace loom::core::reference {
namespace {

// One segment of n values. gamma may be null: absent. scaled may be null: not requested.
template <class T>
struct NormSegment {
  const T *x, *gamma, *dy;
  T *dx, *scaled;
  int64_t n;
  T mean, inverse;  // h = (x - mean) * inverse

  T h(int64_t i) const { return (x[i] - mean) * inverse; }
  T u(int64_t i) const { return gamma == nullptr ? dy[i] : dy[i] * gamma[i]; }

  void run(NormKind kind, T eps) {
    const T count = static_cast<T>(n);
    mean = T(0);
    if (kind == NormKind::layer) mean = reduce_sum<T>(n, [&](int64_t i) { return x[i]; }) / count;
    // x - 0 is x, so one formula serves both kinds.
    const auto square = [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); };
    inverse = T(1) / fmath::sqrt<T>(reduce_sum<T>(n, square) / count + eps);
    const T mean_uh = reduce_sum<T>(n, [&](int64_t i) { return u(i) * h(i); }) / count;
    T mean_u = T(0);
    if (kind == NormKind::layer) mean_u = reduce_sum<T>(n, [&](int64_t i) { return u(i); }) / count;
    for (int64_t i = 0; i < n; ++i) {
      const T gradient = inverse * ((u(i) - mean_u) - h(i) * mean_uh);
      if (scaled != nullptr) scaled[i] = dy[i] * h(i);
      dx[i] = gradient;
    }
  }
};

}  // namespace

template <class T>
void reduce_cols(const ReduceColsArgs& args, const Lane& lane) {
  const LaneRange cols = lane.range(args.x.cols());
  for (int64_t n = cols.begin; n < cols.end; ++n) {
    const T sum =
        reduce_sum<T>(args.x.rows(), [&](int64_t r) { return args.x.template row<T>(r)[n]; });
    store(args.y.values<T>()[n], sum, args.accumulate);
  }
}

template <class T>
void scatter_add_rows(const ScatterAddRowsArgs& args, const Lane& lane) {
  const LaneRange cols = lane.range(args.table.cols());
  for (int64_t r = 0; r < args.dy.rows(); ++r) {
    const int64_t id = args.ids.i32()[r];
    if (id == args.skip) continue;
    T* to = args.table.row<T>(id);
    const T* from = args.dy.row<T>(r);
    for (int64_t c = cols.begin; c < cols.end; ++c) to[c] = to[c] + from[c];
  }
}

template <class T>
void unary_dx(const UnaryDxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* x = args.x.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dx = args.dx.row<T>(r);
    for (int64_t i = 0; i < args.x.cols(); ++i) {
      const T by = args.from_output ? activate_dx_from_output<T>(args.kind, x[i])
                                    : activate_dx<T>(args.kind, x[i]);
      dx[i] = dy[i] * by;
    }
  }
}

template <class T>
void gated_dx(const GatedDxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.gate.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* gate = args.gate.row<T>(r);
    const T* up = args.up.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dgate = args.dgate.row<T>(r);
    T* dup = args.dup.row<T>(r);
    for (int64_t i = 0; i < args.gate.cols(); ++i) {
      const T by_gate = (dy[i] * up[i]) * activate_dx<T>(args.activation, gate[i]);
      const T by_up = dy[i] * activate<T>(args.activation, gate[i]);
      dgate[i] = by_gate;
      dup[i] = by_up;
    }
  }
}

template <class T>
void norm_dx(const NormDxArgs& args, const Lane& lane) {
  const int64_t cols = args.x.cols();
  const int64_t n = cols / args.segments;
  const bool gamma_per_row = args.gamma.shape.count() == cols;
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t begin = 0; begin < cols; begin += n) {
      NormSegment<T> segment{};
      segment.x = args.x.row<T>(r) + begin;
      segment.dy = args.dy.row<T>(r) + begin;
      segment.dx = args.dx.row<T>(r) + begin;
      if (!args.scaled.empty()) segment.scaled = args.scaled.row<T>(r) + begin;
      if (!args.gamma.empty()) segment.gamma = args.gamma.values<T>() + (gamma_per_row ? begin : 0);
      segment.n = n;
      segment.run(args.kind, static_cast<T>(args.eps));
    }
  }
}

template <class T>
void softmax_dx(const SoftmaxDxArgs& args, const Lane& lane) {
  const T scale = static_cast<T>(args.scale);
  const LaneRange rows = lane.range(args.y.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* y = args.y.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dx = args.dx.row<T>(r);
    const T sum = reduce_sum<T>(args.y.cols(), [&](int64_t i) { return dy[i] * y[i]; });
    for (int64_t i = 0; i < args.y.cols(); ++i) dx[i] = (scale * y[i]) * (dy[i] - sum);
  }
}

LOOM_REFERENCE_BODY(reduce_cols, ReduceColsArgs);
LOOM_REFERENCE_BODY(scatter_add_rows, ScatterAddRowsArgs);
LOOM_REFERENCE_BODY(unary_dx, UnaryDxArgs);
LOOM_REFERENCE_BODY(gated_dx, GatedDxArgs);
LOOM_REFERENCE_BODY(norm_dx, NormDxArgs);
LOOM_REFERENCE_BODY(softmax_dx, SoftmaxDxArgs);

}  // namespace loom::core::reference
