// loss: the loss of each row and its gradient, in one pass. Sums over a row follow rule 4 of
// docs/numerics.md; means divide by N last. Rows that do not count (weight 0, or a class id outside
// [0, N)) give zeros, whatever they hold. A term with target 0 adds nothing to softmax_ce and kl,
// even if the logit is -inf. An absent weight is 1. An absent dpred means that only the loss is
// computed. dpred may be pred. Lanes share the rows.
#include "backend/reference/reduce.hpp"
#include "backend/reference/sums.hpp"

namespace loom::core::reference {
namespace {

template <class T>
T sign_of(T x) {
  return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
}

// One row. target is null for class ids.
template <class T>
struct LossRow {
  const T *pred, *target;
  int64_t n;
  T weight;
  T* dpred;  // may be null

  // dpred = weight * gradient(i)
  template <class Gradient>
  void write(Gradient gradient) const {
    if (dpred == nullptr) return;
    for (int64_t i = 0; i < n; ++i) dpred[i] = weight * gradient(i);
  }
  template <class Value, class Gradient>
  T mean_of(Value value, Gradient gradient) const {
    const T count = static_cast<T>(n);
    const T mean = reduce_sum<T>(n, value) / count;
    write([&](int64_t i) { return gradient(i) / count; });
    return mean;
  }
  T difference(int64_t i) const { return pred[i] - target[i]; }
};

template <class T>
T squared_loss(const LossRow<T>& row) {
  return row.mean_of([&](int64_t i) { return row.difference(i) * row.difference(i); },
                     [&](int64_t i) { return row.difference(i) + row.difference(i); });
}

template <class T>
T absolute_loss(const LossRow<T>& row) {
  return row.mean_of([&](int64_t i) { return fmath::abs<T>(row.difference(i)); },
                     [&](int64_t i) { return sign_of(row.difference(i)); });
}

template <class T>
T huber_loss(const LossRow<T>& row, T delta) {
  return row.mean_of(
      [&](int64_t i) {
        const T d = row.difference(i), a = fmath::abs<T>(d);
        return a <= delta ? (T(0.5) * d) * d : delta * (a - T(0.5) * delta);
      },
      [&](int64_t i) {
        const T d = row.difference(i);
        return fmath::abs<T>(d) <= delta ? d : sign_of(d) * delta;
      });
}

// On logits: max(x, 0) - x t + log(1 + e^-|x|). The gradient is s(x) - t with s the sigmoid. It is
// computed as (1 - t) s(x) - t s(-x), which keeps its digits if the target is 1 and s(x) is nearly
// 1.
template <class T>
T binary_loss(const LossRow<T>& row) {
  return row.mean_of(
      [&](int64_t i) {
        const T x = row.pred[i];
        const T tail = fmath::log1p_unit<T>(fmath::exp<T>(-fmath::abs<T>(x)));
        return (fmath::max<T>(x, T(0)) - x * row.target[i]) + tail;
      },
      [&](int64_t i) {
        const T x = row.pred[i], t = row.target[i];
        return (T(1) - t) * fmath::sigmoid<T>(x) - t * fmath::sigmoid<T>(-x);
      });
}

// The modulating factor u^gamma, with 0^gamma = 0 but 0^0 = 1.
template <class T>
T power_of_unit(T u, T gamma) {
  if (gamma == T(0)) return T(1);
  return u > T(0) ? fmath::exp<T>(gamma * fmath::log<T>(u)) : T(0);
}

// u^gamma times the binary loss, and the gradient by the product rule. u^(gamma - 1) is computed as
// u^gamma / u; the slope is 0 if u is 0.
template <class T>
T focal_loss(const LossRow<T>& row, T gamma, T alpha) {
  const auto side = [&](T t) {
    return alpha < T(0) ? T(1) : alpha * t + (T(1) - alpha) * (T(1) - t);
  };
  const auto cross = [&](T x, T t) {
    const T tail = fmath::log1p_unit<T>(fmath::exp<T>(-fmath::abs<T>(x)));
    return (fmath::max<T>(x, T(0)) - x * t) + tail;
  };
  return row.mean_of(
      [&](int64_t i) {
        const T x = row.pred[i], t = row.target[i];
        const T u = fmath::sigmoid<T>(-x) * t + fmath::sigmoid<T>(x) * (T(1) - t);
        return side(t) * (power_of_unit(u, gamma) * cross(x, t));
      },
      [&](int64_t i) {
        const T x = row.pred[i], t = row.target[i];
        const T p = fmath::sigmoid<T>(x), q = fmath::sigmoid<T>(-x);
        const T u = q * t + p * (T(1) - t);
        const T factor = power_of_unit(u, gamma);
        const T slope = u > T(0) ? ((gamma * factor) / u) * ((p * q) * (T(1) - (t + t))) : T(0);
        return side(t) * (factor * ((T(1) - t) * p - t * q) + slope * cross(x, t));
      });
}

template <class T>
T quantile_loss(const LossRow<T>& row, T share) {
  return row.mean_of(
      [&](int64_t i) {
        const T d = row.difference(i);
        return d > T(0) ? (T(1) - share) * d : share * (T(0) - d);
      },
      [&](int64_t i) {
        const T d = row.difference(i);
        return d > T(0) ? T(1) - share : (d < T(0) ? T(0) - share : T(0));
      });
}

template <class T>
T poisson_loss(const LossRow<T>& row) {
  return row.mean_of(
      [&](int64_t i) { return fmath::exp<T>(row.pred[i]) - row.target[i] * row.pred[i]; },
      [&](int64_t i) { return fmath::exp<T>(row.pred[i]) - row.target[i]; });
}

// log cosh d = |d| + log(1 + e^(-2 |d|)) - log 2, in which no e^d overflows.
template <class T>
T log_cosh_loss(const LossRow<T>& row) {
  constexpr double kLog2 = 0.693147180559945309417;
  return row.mean_of(
      [&](int64_t i) {
        const T a = fmath::abs<T>(row.difference(i));
        return (a + fmath::log1p_unit<T>(fmath::exp<T>(T(-2) * a))) - static_cast<T>(kLog2);
      },
      [&](int64_t i) { return fmath::tanh<T>(row.difference(i)); });
}

template <class T>
T hinge_loss(const LossRow<T>& row) {
  const auto left = [&](int64_t i) {
    return row.target[i] > T(0) ? T(1) - row.pred[i] : T(1) + row.pred[i];
  };
  return row.mean_of([&](int64_t i) { return fmath::max<T>(left(i), T(0)); },
                     [&](int64_t i) {
                       if (!(left(i) > T(0))) return T(0);
                       return row.target[i] > T(0) ? T(-1) : T(1);
                     });
}

// log softmax(pred)[i] = (pred[i] - largest) - log_sum.
template <class T>
struct LogSoftmax {
  explicit LogSoftmax(const LossRow<T>& row) : pred(row.pred) {
    largest = reduce_max<T>(row.n, [&](int64_t i) { return pred[i]; });
    sum = reduce_sum<T>(row.n, [&](int64_t i) { return fmath::exp<T>(pred[i] - largest); });
    log_sum = fmath::log<T>(sum);
  }
  T log(int64_t i) const { return (pred[i] - largest) - log_sum; }
  T value(int64_t i) const { return fmath::exp<T>(pred[i] - largest) / sum; }

  const T* pred;
  T largest, sum, log_sum;
};

// -sum t log softmax; its gradient is softmax * sum(t) - t, and targets need not sum to 1.
template <class T>
T cross_entropy(const LossRow<T>& row, int64_t id, T smoothing) {
  const LogSoftmax<T> softmax(row);
  const T keep = T(1) - smoothing, floor = smoothing / static_cast<T>(row.n);
  const auto target = [&](int64_t i) {
    const T t = row.target != nullptr ? row.target[i] : (i == id ? T(1) : T(0));
    return keep * t + floor;
  };
  T total = T(1);
  if (row.target != nullptr) {
    total = keep * reduce_sum<T>(row.n, [&](int64_t i) { return row.target[i]; }) + smoothing;
  }
  const T sum = reduce_sum<T>(row.n, [&](int64_t i) {
    const T t = target(i);
    return t == T(0) ? T(0) : t * softmax.log(i);
  });
  row.write([&](int64_t i) { return softmax.value(i) * total - target(i); });
  return T(0) - sum;
}

template <class T>
T divergence(const LossRow<T>& row) {
  const LogSoftmax<T> softmax(row);
  const T sum = reduce_sum<T>(row.n, [&](int64_t i) {
    const T t = row.target[i];
    return t == T(0) ? T(0) : t * (fmath::log<T>(t) - softmax.log(i));
  });
  row.write([&](int64_t i) { return softmax.value(i) - row.target[i]; });
  return sum;
}

// Norms below 1e-8 count as 1e-8. The gradient of a pred that short has no term along pred.
template <class T>
T cosine_loss(const LossRow<T>& row) {
  const T shortest = T(1e-8);
  const T *p = row.pred, *t = row.target;
  const T p_norm = fmath::sqrt<T>(reduce_sum<T>(row.n, [&](int64_t i) { return p[i] * p[i]; }));
  const T t_norm = fmath::sqrt<T>(reduce_sum<T>(row.n, [&](int64_t i) { return t[i] * t[i]; }));
  const T by_p = p_norm < shortest ? shortest : p_norm;
  const T by_t = t_norm < shortest ? shortest : t_norm;
  const T dot = reduce_sum<T>(row.n, [&](int64_t i) { return p[i] * t[i]; });
  const T cosine = (dot / by_p) / by_t;
  const T pull = p_norm < shortest ? T(0) : cosine;
  row.write([&](int64_t i) { return (pull * (p[i] / by_p) - t[i] / by_t) / by_p; });
  return T(1) - cosine;
}

template <class T>
T row_loss(const LossArgs& args, const LossRow<T>& row, int64_t id) {
  switch (args.kind) {
    case LossKind::mse: return squared_loss(row);
    case LossKind::mae: return absolute_loss(row);
    case LossKind::huber: return huber_loss(row, static_cast<T>(args.delta));
    case LossKind::softmax_ce: return cross_entropy(row, id, static_cast<T>(args.smoothing));
    case LossKind::bce: return binary_loss(row);
    case LossKind::kl: return divergence(row);
    case LossKind::cosine: return cosine_loss(row);
    case LossKind::focal:
      return focal_loss(row, static_cast<T>(args.delta), static_cast<T>(args.alpha));
    case LossKind::quantile: return quantile_loss(row, static_cast<T>(args.delta));
    case LossKind::poisson: return poisson_loss(row);
    case LossKind::log_cosh: return log_cosh_loss(row);
    case LossKind::hinge: return hinge_loss(row);
  }
  return T(0);
}

}  // namespace

template <class T>
void loss(const LossArgs& args, const Lane& lane) {
  const int64_t n = args.pred.cols();
  const bool ids = args.target.dtype == DType::i32;
  const LaneRange rows = lane.range(args.pred.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    LossRow<T> row{args.pred.row<T>(r), nullptr, n, T(1), nullptr};
    if (!ids) row.target = args.target.row<T>(r);
    if (!args.weight.empty()) row.weight = args.weight.values<T>()[r];
    if (!args.dpred.empty()) row.dpred = args.dpred.row<T>(r);
    const int64_t id = ids ? args.target.i32()[r] : 0;
    T unused = T(0);
    T& out = args.row_loss.empty() ? unused : args.row_loss.values<T>()[r];
    if (row.weight == T(0) || id < 0 || id >= n) {
      out = T(0);
      for (int64_t i = 0; row.dpred != nullptr && i < n; ++i) row.dpred[i] = T(0);
      continue;
    }
    out = row.weight * row_loss(args, row, id);
  }
}

LOOM_REFERENCE_BODY(loss, LossArgs);

}  // namespace loom::core::reference
