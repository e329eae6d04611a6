// entmax and entmax_dx, row by row. Let v = (x * scale) * (alpha - 1) and m the maximum of v under
// rule 4. Then z = v - m <= 0, and t is in [-1, 0). A row of only -inf gives zeros. For alpha 2 and
// 1.5, t comes from sums over z in descending order. They end at the first value outside the
// support; all values at or below -1 are outside. For other alphas t comes from 60 halvings of [-1,
// 0], with sums under rule 4. No memory besides y is needed: each step searches the next smaller z.
#include "backend/reference/reduce.hpp"
#include "backend/reference/sums.hpp"

namespace loom::core::reference {
namespace {

// The largest of n values below `bound`, and how often it occurs; count 0 if there is none.
template <class T>
struct Step {
  T value;
  int64_t count;
};
template <class T>
Step<T> next_below(const T* z, int64_t n, T bound) {
  Step<T> best{T(0), 0};
  for (int64_t i = 0; i < n; ++i) {
    if (!(z[i] < bound)) continue;
    if (best.count == 0 || z[i] > best.value) {
      best = {z[i], 1};
    } else if (z[i] == best.value) {
      ++best.count;
    }
  }
  return best;
}

// The threshold if z and everything above it are the support, or NaN if z is not part of it. There
// are k values; z is the last of them. Takes their sum and sum of squares.
template <class T>
T sparsemax_threshold(T k, T sum, T /*squares*/, T z) {
  return T(1) + k * z > sum ? (sum - T(1)) / k : static_cast<T>(__builtin_nan(""));
}
template <class T>
T entmax15_threshold(T k, T sum, T squares, T z) {
  const T mean = sum / k;
  const T spread = k * (squares / k - mean * mean);
  const T delta = (T(1) - spread) / k;
  const T t = mean - fmath::sqrt<T>(delta > T(0) ? delta : T(0));
  return t <= z ? t : static_cast<T>(__builtin_nan(""));
}

template <class T, class Threshold>
T sorted_threshold(const T* z, int64_t n, Threshold threshold) {
  T t = T(-1), sum = T(0), squares = T(0), k = T(0);
  T bound = static_cast<T>(__builtin_inf());
  while (true) {
    const Step<T> step = next_below(z, n, bound);
    if (step.count == 0 || step.value <= T(-1)) return t;
    for (int64_t i = 0; i < step.count; ++i) {
      k = k + T(1);
      sum = sum + step.value;
      squares = squares + step.value * step.value;
      const T here = threshold(k, sum, squares, step.value);
      if (here != here) return t;
      t = here;
    }
    bound = step.value;
  }
}

// max(v, 0)^(1/(alpha - 1)); a NaN stays one.
template <class T>
T powered(T v, T alpha) {
  if (v != v) return v;
  if (!(v > T(0))) return T(0);
  if (alpha == T(2)) return v;
  if (alpha == T(1.5)) return v * v;
  return fmath::exp<T>(fmath::log<T>(v) / (alpha - T(1)));
}

template <class T>
T bisected_threshold(const T* z, int64_t n, T alpha) {
  T low = T(-1), width = T(1);
  for (int i = 0; i < 60; ++i) {
    width = width * T(0.5);
    const T t = low + width;
    const T sum = reduce_sum<T>(n, [&](int64_t j) { return powered<T>(z[j] - t, alpha); });
    if (sum >= T(1)) low = t;
  }
  return low;
}

template <class T>
void entmax_row(const T* x, T scale, T alpha, int64_t n, T* y) {
  const T largest = reduce_max<T>(n, [&](int64_t i) { return (x[i] * scale) * (alpha - T(1)); });
  const bool masked = largest == static_cast<T>(-__builtin_inf());
  for (int64_t i = 0; i < n; ++i) y[i] = masked ? T(0) : (x[i] * scale) * (alpha - T(1)) - largest;
  if (masked) return;
  T t;
  if (alpha == T(2)) {
    t = sorted_threshold<T>(y, n, sparsemax_threshold<T>);
  } else if (alpha == T(1.5)) {
    t = sorted_threshold<T>(y, n, entmax15_threshold<T>);
  } else {
    t = bisected_threshold<T>(y, n, alpha);
  }
  for (int64_t i = 0; i < n; ++i) y[i] = powered<T>(y[i] - t, alpha);
}

// y^(2 - alpha) on the support.
template <class T>
T weight(T y, T alpha) {
  if (!(y > T(0))) return T(0);
  if (alpha == T(2)) return T(1);
  if (alpha == T(1.5)) return fmath::sqrt<T>(y);
  return fmath::exp<T>((T(2) - alpha) * fmath::log<T>(y));
}

// The reference point of the gradients of a row: dy of the largest weight, and 0 for alphas up to
// 2, whose weights are at most 1. For other alphas a small y has an unbounded weight. Without the
// reference point `dy - mean` would be a rounding error times that weight.
template <class T>
T base_of(const T* y, const T* dy, int64_t n, T alpha) {
  if (!(alpha > T(2))) return T(0);
  T least = static_cast<T>(__builtin_inf()), base = T(0);
  for (int64_t i = 0; i < n; ++i) {
    if (!(y[i] > T(0)) || y[i] > least || (y[i] == least && !(dy[i] > base))) continue;
    least = y[i];
    base = dy[i];
  }
  return base;
}

}  // namespace

template <class T>
void entmax(const EntmaxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    entmax_row<T>(args.x.row<T>(r), static_cast<T>(args.scale), static_cast<T>(args.alpha),
                  args.x.cols(), args.y.row<T>(r));
  }
}

// A row without support, as entmax makes of a row of only -inf, has no gradient.
template <class T>
void entmax_dx(const EntmaxDxArgs& args, const Lane& lane) {
  const T scale = static_cast<T>(args.scale), alpha = static_cast<T>(args.alpha);
  const int64_t n = args.y.cols();
  const LaneRange rows = lane.range(args.y.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* y = args.y.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dx = args.dx.row<T>(r);
    const T base = base_of<T>(y, dy, n, alpha);
    const T weighted =
        reduce_sum<T>(n, [&](int64_t i) { return weight<T>(y[i], alpha) * (dy[i] - base); });
    const T total = reduce_sum<T>(n, [&](int64_t i) { return weight<T>(y[i], alpha); });
    const T mean = weighted / total;
    for (int64_t i = 0; i < n; ++i) {
      dx[i] = total == T(0) ? T(0) : (scale * weight<T>(y[i], alpha)) * ((dy[i] - base) - mean);
    }
  }
}

LOOM_REFERENCE_BODY(entmax, EntmaxArgs);
LOOM_REFERENCE_BODY(entmax_dx, EntmaxDxArgs);

}  // namespace loom::core::reference
