// Per-value work of a training step: gradients of activations, sums over rows, parameter updates
// and their packing. Operations follow the order of the reference bodies.

LOOM_INLINE V16 zero16() {
  return set16(0.0f);
}

// ---- gradients of activations ----

// Out of line: inlined into every loop these would be most of the code.
__attribute__((noinline)) void derive16(UnaryKind kind, V16& x) {
  LOOM_EACH(i) x.v[i] = activate_dx<Vf>(kind, x.v[i]);
}
__attribute__((noinline)) void derive16_from_output(UnaryKind kind, V16& y) {
  LOOM_EACH(i) y.v[i] = activate_dx_from_output<Vf>(kind, y.v[i]);
}

inline void unary_dx(const UnaryDxArgs& a, const Lane& lane) {
  const bool relu = a.kind == UnaryKind::relu;  // the same from either side
  each16(a.x.rows(), a.x.cols(), lane, [&](int64_t r, int64_t c, int64_t n) {
    V16 x = load16_n(a.x.f32_row(r) + c, n);
    const V16 dy = load16_n(a.dy.f32_row(r) + c, n);
    if (relu) {
      LOOM_EACH(i) x.v[i] = x.v[i] > 0.0f ? vf_set(1.0f) : vf_set(0.0f);
    } else if (a.from_output) {
      derive16_from_output(a.kind, x);
    } else {
      derive16(a.kind, x);
    }
    store16_n(a.dx.f32_row(r) + c, mul16(dy, x), n);
  });
}

inline void gated_dx(const GatedDxArgs& a, const Lane& lane) {
  each16(a.gate.rows(), a.gate.cols(), lane, [&](int64_t r, int64_t c, int64_t n) {
    V16 gate = load16_n(a.gate.f32_row(r) + c, n);
    const V16 up = load16_n(a.up.f32_row(r) + c, n);
    const V16 dy = load16_n(a.dy.f32_row(r) + c, n);
    V16 slope = gate;
    derive16(static_cast<UnaryKind>(a.activation), slope);
    activate16(a.activation, gate);
    store16_n(a.dgate.f32_row(r) + c, mul16(mul16(dy, up), slope), n);
    store16_n(a.dup.f32_row(r) + c, mul16(dy, gate), n);
  });
}

// ---- sums over rows ----

// The sums of sixteen columns or fewer under rule 4, rows [begin, end) of one block.
LOOM_INLINE V16 column_sums(const Tensor& x, int64_t begin, int64_t end, int64_t c, int64_t n) {
  V16 lanes[32];
  for (V16& v : lanes) v = zero16();
  for (int64_t r = begin; r < end; r += 32) {
    const int64_t count = end - r < 32 ? end - r : 32;
    for (int64_t j = 0; j < count; ++j)
      lanes[j] = add16(lanes[j], load16_n(x.f32_row(r + j) + c, n));
  }
  for (int half = 16; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] = add16(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

inline void reduce_cols(const ReduceColsArgs& a, const Lane& lane) {
  const LaneRange cols = lane.range(a.x.cols(), 16);
  const int64_t rows = a.x.rows();
  for (int64_t c = cols.begin; c < cols.end; c += 16) {
    const int64_t n = cols.end - c;
    V16 total = zero16();
    for (int64_t begin = 0; begin < rows; begin += kReduceBlock) {
      const int64_t end = rows - begin < kReduceBlock ? rows : begin + kReduceBlock;
      const V16 sum = column_sums(a.x, begin, end, c, n);
      total = begin == 0 ? sum : add16(total, sum);
    }
    if (a.accumulate) total = add16(load16_n(a.y.f32() + c, n), total);
    store16_n(a.y.f32() + c, total, n);
  }
}

inline void scatter_add_rows(const ScatterAddRowsArgs& a, const Lane& lane) {
  const LaneRange cols = lane.range(a.table.cols(), 16);
  for (int64_t r = 0; r < a.dy.rows(); ++r) {
    const int64_t id = a.ids.i32()[r];
    if (id == a.skip) continue;
    for (int64_t c = cols.begin; c < cols.end; c += 16) {
      const int64_t n = cols.end - c;
      float* const to = a.table.f32_row(id) + c;
      store16_n(to, add16(load16_n(to, n), load16_n(a.dy.f32_row(r) + c, n)), n);
    }
  }
}

// ---- updates ----

LOOM_INLINE Vf vf_sqrt(Vf x) {
#if LOOM_SIMD_WIDTH == 16
  return (Vf)_mm512_sqrt_ps((__m512)x);
#elif LOOM_SIMD_WIDTH == 8
  return (Vf)_mm256_sqrt_ps((__m256)x);
#else
  return fmath::sqrt<Vf>(x);
#endif
}

struct Update {
  float rate, c1, c2, c3, beta1, beta2, eps, decay;

  LOOM_INLINE void adam_step(Vf& p, Vf g, Vf& m, Vf& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * (g * g);
    p = p - (rate * (m / c1)) / (vf_sqrt(v / c2) + eps);
  }

  LOOM_INLINE void averages(Vf g, Vf& m, Vf& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * (g * g);
  }
  LOOM_INLINE void adagrad_step(Vf& p, Vf g, Vf& v) const {
    v = v + g * g;
    p = p - (rate * g) / (vf_sqrt(v) + eps);
  }
  LOOM_INLINE void adadelta_step(Vf& p, Vf g, Vf& m, Vf& v) const {
    v = beta2 * v + (1.0f - beta2) * (g * g);
    const Vf d = (vf_sqrt(m + eps) / vf_sqrt(v + eps)) * g;
    m = beta2 * m + (1.0f - beta2) * (d * d);
    p = p - rate * d;
  }
  LOOM_INLINE void nadam_step(Vf& p, Vf g, Vf& m, Vf& v) const {
    averages(g, m, v);
    p = p - (rate * (c1 * g + c3 * m)) / (vf_sqrt(v / c2) + eps);
  }
  LOOM_INLINE void adamax_step(Vf& p, Vf g, Vf& m, Vf& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    const Vf before = beta2 * v, now = fmath::abs<Vf>(g) + eps;
    v = before > now ? before : now;
    p = p - (rate * (m / c1)) / v;
  }
  LOOM_INLINE void radam_step(Vf& p, Vf g, Vf& m, Vf& v) const {
    averages(g, m, v);
    const Vf step = rate * (m / c1);
    p = p - (c3 > 0.0f ? (step * c3) / (vf_sqrt(v) + eps) : step);
  }

  template <UpdateKind kKind>
  LOOM_INLINE void step(Vf& p, Vf g, Vf& m, Vf& v) const {
    using enum UpdateKind;
    const Vf decayed = g + decay * p;
    if constexpr (kKind == sgd) p = p - rate * decayed;
    if constexpr (kKind == momentum || kKind == nesterov) m = beta1 * m + decayed;
    if constexpr (kKind == momentum) p = p - rate * m;
    if constexpr (kKind == nesterov) p = p - rate * (decayed + beta1 * m);
    if constexpr (kKind == rmsprop) {
      v = beta2 * v + (1.0f - beta2) * (decayed * decayed);
      p = p - (rate * decayed) / (vf_sqrt(v) + eps);
    }
    if constexpr (kKind == adamw) p = p - (rate * decay) * p;
    if constexpr (kKind == adam) adam_step(p, decayed, m, v);
    if constexpr (kKind == adamw) adam_step(p, g, m, v);
    if constexpr (kKind == lion) {
      const Vf mixed = beta1 * m + (1.0f - beta1) * g;
      const Vf sign = mixed > 0.0f ? vf_set(1.0f) : (mixed < 0.0f ? vf_set(-1.0f) : vf_set(0.0f));
      p = p - rate * (sign + decay * p);
      m = beta2 * m + (1.0f - beta2) * g;
    }
    if constexpr (kKind == adagrad) adagrad_step(p, decayed, v);
    if constexpr (kKind == adadelta) adadelta_step(p, decayed, m, v);
    if constexpr (kKind == nadam) nadam_step(p, decayed, m, v);
    if constexpr (kKind == adamax) adamax_step(p, decayed, m, v);
    if constexpr (kKind == radam) radam_step(p, decayed, m, v);
  }
};

template <UpdateKind kKind>
void update_loop(const OptimizeArgs& a, const Update& update, float scale, const Lane& lane) {
  constexpr bool has_v = keeps_v(kKind), has_m = keeps_m(kKind);
  const auto is_contiguous = [](const Tensor& t) { return t.empty() || t.row_stride == t.cols(); };
  const int32_t* const named = a.rows.empty() ? nullptr : a.rows.i32();
  const bool flat = named == nullptr && is_contiguous(a.p) && is_contiguous(a.g) &&
                    is_contiguous(a.m) && is_contiguous(a.v);
  const int64_t rows = flat ? 1 : a.g.rows();
  const int64_t cols = flat ? a.p.shape.count() : a.p.cols();
  each16(rows, cols, lane, [&](int64_t i, int64_t c, int64_t n) {
    const int64_t r = named == nullptr ? i : named[i];
    if (r < 0) return;
    V16 p = load16_n(a.p.f32_row(r) + c, n), m = zero16(), v = zero16();
    const V16 g = load16_n(a.g.f32_row(i) + c, n);
    if constexpr (has_m) m = load16_n(a.m.f32_row(r) + c, n);
    if constexpr (has_v) v = load16_n(a.v.f32_row(r) + c, n);
    LOOM_EACH(k) update.step<kKind>(p.v[k], g.v[k] * scale, m.v[k], v.v[k]);
    store16_n(a.p.f32_row(r) + c, p, n);
    if constexpr (has_m) store16_n(a.m.f32_row(r) + c, m, n);
    if constexpr (has_v) store16_n(a.v.f32_row(r) + c, v, n);
  });
}

inline void optimize(const OptimizeArgs& a, const Lane& lane) {
  const float scale = a.scale.empty() ? 1.0f : a.scale.f32()[0];
  if (scale != scale) return;
  const float* h = a.hyper.f32();
  const Update u{h[0], h[1], h[2], h[3], a.beta1, a.beta2, a.eps, a.decay};
  switch (a.kind) {
    using enum UpdateKind;
    case sgd: return update_loop<sgd>(a, u, scale, lane);
    case momentum: return update_loop<momentum>(a, u, scale, lane);
    case nesterov: return update_loop<nesterov>(a, u, scale, lane);
    case rmsprop: return update_loop<rmsprop>(a, u, scale, lane);
    case adam: return update_loop<adam>(a, u, scale, lane);
    case adamw: return update_loop<adamw>(a, u, scale, lane);
    case lion: return update_loop<lion>(a, u, scale, lane);
    case adagrad: return update_loop<adagrad>(a, u, scale, lane);
    case adadelta: return update_loop<adadelta>(a, u, scale, lane);
    case nadam: return update_loop<nadam>(a, u, scale, lane);
    case adamax: return update_loop<adamax>(a, u, scale, lane);
    case radam: return update_loop<radam>(a, u, scale, lane);
  }
}

// ---- packing ----

typedef uint16_t Vh __attribute__((vector_size(2 * LOOM_SIMD_WIDTH)));

// Rounds to nearest even, with the same integer arithmetic as the dtype room.
LOOM_INLINE Vh vf_to_bf16(Vf x) {
  const Vu u = (Vu)x;
  const Vu rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return __builtin_convertvector((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded, Vh);
}
LOOM_INLINE Vh vf_to_f16(Vf x) {
  const Vu u = (Vu)x;
  const Vu sign = (u >> 16) & 0x8000u;
  const Vu a = u & 0x7fffffffu;
  const Vu nan = 0x200u | ((a >> 13) & 0x3ffu);
  const Vu big = 0x7c00u | (a > 0x7f800000u ? nan : Vu{});
  const Vu small = (Vu)((Vf)a + 0.5f) - 0x3f000000u;
  const Vu normal = (a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13;
  const Vu finite = a < 0x38800000u ? small : normal;
  return __builtin_convertvector(sign | (a >= 0x477ff000u ? big : finite), Vh);
}

// Sixteen floats at k of a group of a wide IEEE type.
LOOM_INLINE void store_wide(DType dtype, const float* from, std::byte* to) {
  if (dtype == DType::f32) return store16(reinterpret_cast<float*>(to), load16(from));
  LOOM_EACH(i) {
    const Vf x = vf_load(from + i * kW);
    const Vh h = dtype == DType::bf16 ? vf_to_bf16(x) : vf_to_f16(x);
    std::memcpy(to + i * kW * 2, &h, sizeof(h));
  }
}

inline void pack_group(const R16& w, const float* src, int64_t group, std::byte* data) {
  const int64_t bytes = dtype_info(w.dtype).bits * 2;  // of one k
  const float* from = src + group * 16 * w.cols;
  std::byte* const to = data + group * w.group_bytes;
  float block[256];
  const bool in_place = w.dtype == DType::f32 && w.rows - group * 16 >= 16;
  for (int64_t k = 0; k < w.cols; k += 16) {
    const int64_t n = w.cols - k < 16 ? w.cols - k : 16;
    if (in_place && n == 16) {
      transpose16(from + k, w.cols, reinterpret_cast<float*>(to) + k * 16, 16);
      continue;
    }
    rows_to_lanes(from + k, w.cols, w.rows - group * 16, n, block);
    for (int64_t i = 0; i < n; ++i) store_wide(w.dtype, block + i * 16, to + (k + i) * bytes);
  }
  std::memset(to + w.cols * bytes, 0, static_cast<size_t>(w.group_bytes - w.cols * bytes));
}

// Floats are copied and transposed. The dtype room packs the other cases: types with scales,
// stochastic rounding, and single rows.
inline void pack(const PackArgs& a, const Lane& lane) {
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  const bool plain = w.dtype == DType::f32 || w.dtype == DType::f16 || w.dtype == DType::bf16;
  if (!plain || a.stochastic || !a.rows.empty()) return reference_ops().pack(a, lane);
  const LaneRange groups = lane.range(w.groups);
  for (int64_t g = groups.begin; g < groups.end; ++g) pack_group(w, a.src.f32(), g, a.w.data);
}
