// optimize: one update of the parameters, value by value, in the compute type. The formulas and
// their order are in ops/args.hpp. Lanes share the values of the gradient.
#include "backend/reference/kernels.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

template <class T>
struct Update {
  explicit Update(const OptimizeArgs& args)
      : kind(args.kind),
        rate(args.hyper.values<T>()[0]),
        c1(args.hyper.values<T>()[1]),
        c2(args.hyper.values<T>()[2]),
        c3(args.hyper.values<T>()[3]),
        beta1(static_cast<T>(args.beta1)),
        beta2(static_cast<T>(args.beta2)),
        eps(static_cast<T>(args.eps)),
        decay(static_cast<T>(args.decay)) {}

  void adam(T& p, T g, T& m, T& v) const {
    m = beta1 * m + (T(1) - beta1) * g;
    v = beta2 * v + (T(1) - beta2) * (g * g);
    p = p - (rate * (m / c1)) / (fmath::sqrt<T>(v / c2) + eps);
  }
  void rmsprop(T& p, T g, T& v) const {
    v = beta2 * v + (T(1) - beta2) * (g * g);
    p = p - (rate * g) / (fmath::sqrt<T>(v) + eps);
  }
  void lion(T& p, T g, T& m) const {
    const T mixed = beta1 * m + (T(1) - beta1) * g;
    const T sign = mixed > T(0) ? T(1) : (mixed < T(0) ? T(-1) : T(0));
    p = p - rate * (sign + decay * p);
    m = beta2 * m + (T(1) - beta2) * g;
  }
  void averages(T g, T& m, T& v) const {
    m = beta1 * m + (T(1) - beta1) * g;
    v = beta2 * v + (T(1) - beta2) * (g * g);
  }
  void adagrad(T& p, T g, T& v) const {
    v = v + g * g;
    p = p - (rate * g) / (fmath::sqrt<T>(v) + eps);
  }
  void adadelta(T& p, T g, T& m, T& v) const {
    v = beta2 * v + (T(1) - beta2) * (g * g);
    const T d = (fmath::sqrt<T>(m + eps) / fmath::sqrt<T>(v + eps)) * g;
    m = beta2 * m + (T(1) - beta2) * (d * d);
    p = p - rate * d;
  }
  void nadam(T& p, T g, T& m, T& v) const {
    averages(g, m, v);
    p = p - (rate * (c1 * g + c3 * m)) / (fmath::sqrt<T>(v / c2) + eps);
  }
  void adamax(T& p, T g, T& m, T& v) const {
    m = beta1 * m + (T(1) - beta1) * g;
    const T before = beta2 * v, now = fmath::abs<T>(g) + eps;
    v = before > now ? before : now;
    p = p - (rate * (m / c1)) / v;
  }
  void radam(T& p, T g, T& m, T& v) const {
    averages(g, m, v);
    const T step = rate * (m / c1);
    p = p - (c3 > T(0) ? (step * c3) / (fmath::sqrt<T>(v) + eps) : step);
  }
  // Only the kinds that have m and v read them.
  void operator()(T& p, T g, T* m, T* v) const {
    const T decayed = g + decay * p;
    switch (kind) {
      case UpdateKind::sgd: p = p - rate * decayed; return;
      case UpdateKind::momentum:
        *m = beta1 * *m + decayed;
        p = p - rate * *m;
        return;
      case UpdateKind::nesterov:
        *m = beta1 * *m + decayed;
        p = p - rate * (decayed + beta1 * *m);
        return;
      case UpdateKind::rmsprop: rmsprop(p, decayed, *v); return;
      case UpdateKind::adam: adam(p, decayed, *m, *v); return;
      case UpdateKind::adamw:
        p = p - (rate * decay) * p;
        adam(p, g, *m, *v);
        return;
      case UpdateKind::lion: lion(p, g, *m); return;
      case UpdateKind::adagrad: adagrad(p, decayed, *v); return;
      case UpdateKind::adadelta: adadelta(p, decayed, *m, *v); return;
      case UpdateKind::nadam: nadam(p, decayed, *m, *v); return;
      case UpdateKind::adamax: adamax(p, decayed, *m, *v); return;
      case UpdateKind::radam: radam(p, decayed, *m, *v); return;
    }
  }

  UpdateKind kind;
  T rate, c1, c2, c3, beta1, beta2, eps, decay;
};

}  // namespace

template <class T>
void optimize(const OptimizeArgs& args, const Lane& lane) {
  const T scale = args.scale.empty() ? T(1) : args.scale.values<T>()[0];
  if (scale != scale) return;
  const Update<T> update(args);
  const int64_t cols = args.p.cols();
  const LaneRange values = lane.range(args.g.shape.count());
  for (int64_t i = values.begin; i < values.end; ++i) {
    const int64_t at = i / cols, c = i % cols;
    const int64_t r = args.rows.empty() ? at : args.rows.i32()[at];
    if (r < 0) continue;
    T* m = args.m.empty() ? nullptr : args.m.row<T>(r) + c;
    T* v = args.v.empty() ? nullptr : args.v.row<T>(r) + c;
    update(args.p.row<T>(r)[c], args.g.row<T>(at)[c] * scale, m, v);
  }
}

LOOM_REFERENCE_BODY(optimize, OptimizeArgs);

}  // namespace loom::core::reference
