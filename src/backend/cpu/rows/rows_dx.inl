// Row-wise gradients and losses. Sums follow rule 4 of docs/numerics.md. Every value of an operand
// is read before its location is written.

inline void softmax_dx(const SoftmaxDxArgs& a, const Lane& lane) {
  const LaneRange rows = lane.range(a.y.rows());
  const int64_t n = a.y.cols();
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float *y = a.y.f32_row(r), *dy = a.dy.f32_row(r);
    float* const dx = a.dx.f32_row(r);
    const float sum = reduce_sum(n, [&](int64_t i, int64_t m) {
      return mul16(load_tail(dy + i, m, 0.0f), load_tail(y + i, m, 0.0f));
    });
    for (int64_t i = 0; i < n; i += 16) {
      V16 v = load16_n(y + i, n - i);
      const V16 d = load16_n(dy + i, n - i);
      LOOM_EACH(k) v.v[k] = (a.scale * v.v[k]) * (d.v[k] - sum);
      store16_n(dx + i, v, n - i);
    }
  }
}

// ---- norm_dx ----

// One segment of n values. gamma may be null: absent. scaled may be null: not requested.
struct NormSegment {
  const float *x, *gamma, *dy;
  float *dx, *scaled;
  int64_t n;
  float mean, inverse;

  LOOM_INLINE V16 centred(int64_t i, int64_t m) const {
    V16 v = load16_n(x + i, m);
    LOOM_EACH(k) v.v[k] = v.v[k] - mean;
    return v;
  }
  LOOM_INLINE V16 h(int64_t i, int64_t m) const {
    V16 v = centred(i, m);
    LOOM_EACH(k) v.v[k] = v.v[k] * inverse;
    return v;
  }
  LOOM_INLINE V16 u(int64_t i, int64_t m) const {
    const V16 d = load16_n(dy + i, m);
    return gamma == nullptr ? d : mul16(d, load16_n(gamma + i, m));
  }

  void run(NormKind kind, float eps) {
    const auto count = static_cast<float>(n);
    const bool layer = kind == NormKind::layer;
    mean = 0.0f;
    if (layer)
      mean = reduce_sum(n, [&](int64_t i, int64_t m) { return load16_n(x + i, m); }) / count;
    const float squares = reduce_sum(n, [&](int64_t i, int64_t m) {
      const V16 v = centred(i, m);
      return keep16(mul16(v, v), m);
    });
    inverse = 1.0f / __builtin_sqrtf(squares / count + eps);
    const float mean_uh =
        reduce_sum(n, [&](int64_t i, int64_t m) { return keep16(mul16(u(i, m), h(i, m)), m); }) /
        count;
    float mean_u = 0.0f;
    if (layer) mean_u = reduce_sum(n, [&](int64_t i, int64_t m) { return u(i, m); }) / count;
    for (int64_t i = 0; i < n; i += 16) {
      V16 gradient = u(i, n - i);
      const V16 at = h(i, n - i);
      const V16 d = load16_n(dy + i, n - i);
      LOOM_EACH(k) gradient.v[k] = inverse * ((gradient.v[k] - mean_u) - at.v[k] * mean_uh);
      if (scaled != nullptr) store16_n(scaled + i, mul16(d, at), n - i);
      store16_n(dx + i, gradient, n - i);
    }
  }
};

inline void norm_dx(const NormDxArgs& a, const Lane& lane) {
  const int64_t cols = a.x.cols();
  const int64_t n = cols / a.segments;
  const bool gamma_per_row = a.gamma.shape.count() == cols;
  const LaneRange rows = lane.range(a.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t begin = 0; begin < cols; begin += n) {
      NormSegment segment{};
      segment.x = a.x.f32_row(r) + begin;
      segment.dy = a.dy.f32_row(r) + begin;
      segment.dx = a.dx.f32_row(r) + begin;
      if (!a.scaled.empty()) segment.scaled = a.scaled.f32_row(r) + begin;
      if (!a.gamma.empty()) segment.gamma = a.gamma.f32() + (gamma_per_row ? begin : 0);
      segment.n = n;
      segment.run(a.kind, a.eps);
    }
  }
}

// ---- losses ----

// One row that counts. target is null for class ids; dpred is null if the gradient is not
// requested.
struct LossRow {
  const float *pred, *target;
  int64_t n;
  float weight;
  float* dpred;
};

LOOM_INLINE float squared_loss(const LossRow& row) {
  const auto difference = [&](int64_t i, int64_t m) {
    V16 d = load16_n(row.pred + i, m);
    const V16 t = load16_n(row.target + i, m);
    LOOM_EACH(k) d.v[k] = d.v[k] - t.v[k];
    return d;
  };
  const auto count = static_cast<float>(row.n);
  const float sum = reduce_sum(row.n, [&](int64_t i, int64_t m) {
    const V16 d = difference(i, m);
    return mul16(d, d);
  });
  for (int64_t i = 0; row.dpred != nullptr && i < row.n; i += 16) {
    V16 d = difference(i, row.n - i);
    LOOM_EACH(k) d.v[k] = row.weight * ((d.v[k] + d.v[k]) / count);
    store16_n(row.dpred + i, d, row.n - i);
  }
  return sum / count;
}

// Targets of softmax_ce, smoothed.
struct CrossTargets {
  const float* target;
  int64_t id;
  float keep, floor;
  LOOM_INLINE V16 at(int64_t i, int64_t m) const {
    V16 t;
    if (target != nullptr) {
      t = load16_n(target + i, m);
    } else {
      const int64_t off = id - i;
      const int32_t here = off >= 0 && off < 16 ? static_cast<int32_t>(off) : -1;
      LOOM_EACH(k) t.v[k] = vi_count(k) == here ? vf_set(1.0f) : vf_set(0.0f);
    }
    LOOM_EACH(k) t.v[k] = keep * t.v[k] + floor;
    return t;
  }
};

LOOM_INLINE float cross_entropy(const LossRow& row, int64_t id, float smoothing) {
  const int64_t n = row.n;
  const float largest = reduce_max(
      n, [&](int64_t i, int64_t m) { return load_tail(row.pred + i, m, -__builtin_inff()); });
  const auto shifted = [&](int64_t i, int64_t m) {
    V16 v = load16_n(row.pred + i, m);
    LOOM_EACH(k) v.v[k] = v.v[k] - largest;
    return v;
  };
  const auto power = [&](int64_t i, int64_t m) {
    V16 v = shifted(i, m);
    LOOM_EACH(k) v.v[k] = fmath::exp<Vf>(v.v[k]);
    return v;
  };
  const float sum = reduce_sum(n, [&](int64_t i, int64_t m) { return keep16(power(i, m), m); });
  const float log_sum = fmath::log<float>(sum);
  const CrossTargets targets{row.target, id, 1.0f - smoothing, smoothing / static_cast<float>(n)};
  float total = 1.0f;
  if (row.target != nullptr) {
    const float all =
        reduce_sum(n, [&](int64_t i, int64_t m) { return load16_n(row.target + i, m); });
    total = (1.0f - smoothing) * all + smoothing;
  }
  const float loss = reduce_sum(n, [&](int64_t i, int64_t m) {
    V16 t = targets.at(i, m);
    const V16 v = shifted(i, m);
    LOOM_EACH(k) t.v[k] = vf_keep(t.v[k] != 0.0f, t.v[k] * (v.v[k] - log_sum));
    return keep16(t, m);
  });
  for (int64_t i = 0; row.dpred != nullptr && i < n; i += 16) {
    V16 v = power(i, n - i);
    const V16 t = targets.at(i, n - i);
    LOOM_EACH(k) v.v[k] = row.weight * ((v.v[k] / sum) * total - t.v[k]);
    store16_n(row.dpred + i, v, n - i);
  }
  return 0.0f - loss;
}

inline void loss(const LossArgs& a, const Lane& lane) {
  const bool cross = a.kind == LossKind::softmax_ce;
  if (!cross && a.kind != LossKind::mse) return reference_ops().loss(a, lane);
  const int64_t n = a.pred.cols();
  const bool ids = a.target.dtype == DType::i32;
  const LaneRange rows = lane.range(a.pred.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    LossRow row{a.pred.f32_row(r), nullptr, n, 1.0f, nullptr};
    if (!ids) row.target = a.target.f32_row(r);
    if (!a.weight.empty()) row.weight = a.weight.f32()[r];
    if (!a.dpred.empty()) row.dpred = a.dpred.f32_row(r);
    const int64_t id = ids ? a.target.i32()[r] : 0;
    float unused = 0.0f;
    float& out = a.row_loss.empty() ? unused : a.row_loss.f32()[r];
    out = 0.0f;
    if (row.weight == 0.0f || id < 0 || id >= n) {
      if (row.dpred != nullptr) std::memset(row.dpred, 0, static_cast<size_t>(n) * 4);
    } else {
      out = row.weight * (cross ? cross_entropy(row, id, a.smoothing) : squared_loss(row));
    }
  }
}
