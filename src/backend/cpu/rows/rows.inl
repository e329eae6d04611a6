// Row-wise kernels: norms, softmax, quantization of activations, elementwise ops, rotary embedding.
// Sums follow rule 4 of docs/numerics.md: 32 virtual lanes (two V16), folded 32 -> 16 -> 8 -> 4 ->
// 2 -> 1, blocks of 4096.

constexpr int64_t kReduceBlock = 4096;

struct JoinSum {
  LOOM_INLINE Vf operator()(Vf a, Vf b) const { return a + b; }
};
struct JoinMax {
  LOOM_INLINE Vf operator()(Vf a, Vf b) const { return fmath::max<Vf>(a, b); }
};
inline float join_max(float a, float b) {
  return a > b ? a : b;
}

#if LOOM_SIMD_WIDTH > 1
// The lanes of v rotated to start at lane S.
template <int S, int... J>
LOOM_INLINE Vf lanes_from(Vf v, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(v, v, ((J + S) % kW)...);
}
#endif

// Joins the upper half of sixteen to the lower half, then 8, 4, 2, 1.
template <class Join>
LOOM_INLINE float fold16(V16 a, Join join) {
  LOOM_UNROLL for (int half = kNV / 2; half >= 1; half /= 2) {
    LOOM_UNROLL for (int i = 0; i < half; ++i) a.v[i] = join(a.v[i], a.v[i + half]);
  }
  Vf v = a.v[0];
#if LOOM_SIMD_WIDTH > 1
  constexpr std::make_integer_sequence<int, kW> lanes;
  if constexpr (kW > 8) v = join(v, lanes_from<kW / 2>(v, lanes));
  if constexpr (kW > 4) v = join(v, lanes_from<4>(v, lanes));
  v = join(v, lanes_from<2>(v, lanes));
  v = join(v, lanes_from<1>(v, lanes));
#endif
  return v[0];
}

// Sum over i in [0, n) of term(i, m), which yields terms i..i+15; those at and past m are zero.
template <class Term>
LOOM_INLINE float reduce_sum(int64_t n, Term term) {
  float total = 0.0f;
  for (int64_t begin = 0; begin < n || begin == 0; begin += kReduceBlock) {
    const int64_t end = n - begin < kReduceBlock ? n : begin + kReduceBlock;
    V16 low = set16(0.0f), high = set16(0.0f);
    for (int64_t i = begin; i < end; i += 32) {
      low = add16(low, term(i, end - i));
      if (i + 16 < end) high = add16(high, term(i + 16, end - i - 16));
    }
    const float sum = fold16(add16(low, high), JoinSum{});
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

// max(a, b) in the first m values. Absent values must not touch a lane, or they would hide its NaN.
LOOM_INLINE V16 max16_n(const V16& a, const V16& b, int64_t m) {
  V16 joined = max16(a, b);
  if (m >= 16) return joined;
  LOOM_EACH(i) joined.v[i] = vi_count(i) < static_cast<int32_t>(m) ? joined.v[i] : a.v[i];
  return joined;
}

template <class Term>
LOOM_INLINE float reduce_max(int64_t n, Term term) {
  float total = -__builtin_inff();
  for (int64_t begin = 0; begin < n; begin += kReduceBlock) {
    const int64_t end = n - begin < kReduceBlock ? n : begin + kReduceBlock;
    V16 low = set16(-__builtin_inff()), high = low;
    for (int64_t i = begin; i < end; i += 32) {
      low = max16_n(low, term(i, end - i), end - i);
      if (i + 16 < end) high = max16_n(high, term(i + 16, end - i - 16), end - i - 16);
    }
    const float largest = fold16(max16(low, high), JoinMax{});
    total = begin == 0 ? largest : join_max(total, largest);
  }
  return total;
}

// Sixteen values of p from i; those at and past m are replaced by `fill`.
LOOM_INLINE V16 load_tail(const float* p, int64_t m, float fill) {
  V16 v = load16_n(p, m);
  if (m >= 16) return v;
  LOOM_EACH(i) v.v[i] = vi_count(i) < static_cast<int32_t>(m) ? v.v[i] : vf_set(fill);
  return v;
}

inline float reduce_row(ReduceKind kind, const float* x, int64_t n) {
  const auto values = [&](int64_t i, int64_t m) { return load_tail(x + i, m, 0.0f); };
  if (kind == ReduceKind::max) return reduce_max(n, values);
  if (kind != ReduceKind::sum_squares) {
    const float sum = reduce_sum(n, values);
    return kind == ReduceKind::mean ? sum / static_cast<float>(n) : sum;
  }
  return reduce_sum(n, [&](int64_t i, int64_t m) {
    const V16 v = values(i, m);
    return mul16(v, v);
  });
}

inline void reduce(const ReduceArgs& a, const Lane& lane) {
  const LaneRange rows = lane.range(a.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r)
    a.y.f32()[r] = reduce_row(a.kind, a.x.f32_row(r), a.x.cols());
}

inline void norm_segment(const NormArgs& a, const float* x, const float* gamma, const float* beta,
                         int64_t n, float* y) {
  float mean = 0.0f;
  float spread;
  if (a.kind == NormKind::layer) {
    mean = reduce_sum(n, [&](int64_t i, int64_t m) { return load_tail(x + i, m, 0.0f); }) /
           static_cast<float>(n);
    spread = reduce_sum(n, [&](int64_t i, int64_t m) {
      V16 v = load_tail(x + i, m, mean);
      LOOM_EACH(k) v.v[k] = (v.v[k] - mean) * (v.v[k] - mean);
      return v;
    });
  } else {
    spread = reduce_sum(n, [&](int64_t i, int64_t m) {
      const V16 v = load_tail(x + i, m, 0.0f);
      return mul16(v, v);
    });
  }
  const float inv = 1.0f / __builtin_sqrtf(spread / static_cast<float>(n) + a.eps);
  for (int64_t i = 0; i < n; i += 16) {
    V16 v = load_tail(x + i, n - i, 0.0f);
    if (a.kind == NormKind::layer) LOOM_EACH(k) v.v[k] = v.v[k] - mean;
    LOOM_EACH(k) v.v[k] = v.v[k] * inv;
    if (gamma != nullptr) v = mul16(v, load_tail(gamma + i, n - i, 0.0f));
    if (beta != nullptr) v = add16(v, load_tail(beta + i, n - i, 0.0f));
    store16_n(y + i, v, n - i);
  }
}

inline void norm(const NormArgs& a, const Lane& lane) {
  const LaneRange rows = lane.range(a.x.rows());
  const int64_t n = a.x.cols() / a.segments;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t s = 0; s < a.segments; ++s) {
      const auto part = [&](const Tensor& t) -> const float* {
        if (t.empty()) return nullptr;
        return t.f32() + (t.cols() == n ? 0 : s * n);
      };
      norm_segment(a, a.x.f32_row(r) + s * n, part(a.gamma), part(a.beta), n,
                   a.y.f32_row(r) + s * n);
    }
  }
}

// y = exp(x * scale - max) / sum over n values; x and y may be the same memory.
LOOM_INLINE void softmax_row(const float* x, float scale, int64_t n, float* y) {
  const float largest = reduce_max(n, [&](int64_t i, int64_t m) {
    V16 v = load16_n(x + i, m);
    LOOM_EACH(k) v.v[k] = v.v[k] * scale;  // reduce_max takes the first m
    return v;
  });
  if (largest == -__builtin_inff()) {
    for (int64_t i = 0; i < n; ++i) y[i] = 0.0f;
    return;
  }
  const float sum = reduce_sum(n, [&](int64_t i, int64_t m) {
    V16 v = load16_n(x + i, m);
    LOOM_EACH(k) v.v[k] = fmath::exp<Vf>(v.v[k] * scale - largest);
    store16_n(y + i, v, m);
    return keep16(v, m);
  });
  for (int64_t i = 0; i < n; i += 16) {
    V16 v = load_tail(y + i, n - i, 0.0f);
    LOOM_EACH(k) v.v[k] = v.v[k] / sum;
    store16_n(y + i, v, n - i);
  }
}

// x = cap tanh(x * scale / cap), for n values.
// The inputs of the softmax of one head, from q . k. slope: of ALiBi, 0 for none. sink: may be
// null.
struct ScoreRule {
  float scale, soft_cap, slope;
  const float* sink;
  bool only_scales() const { return soft_cap == 0.0f && slope == 0.0f && sink == nullptr; }
};

// x = scale x, then cap tanh(x / cap), then x - slope * |distance|. `distance`: the position of the
// row minus the first of the n positions.
inline void softmax_inputs(float* x, const ScoreRule& rule, int64_t distance, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    V16 v = load16_n(x + i, n - i);
    LOOM_EACH(k) v.v[k] = v.v[k] * rule.scale;
    if (rule.soft_cap > 0.0f)
      LOOM_EACH(k) v.v[k] = fmath::tanh<Vf>(v.v[k] / rule.soft_cap) * rule.soft_cap;
    if (rule.slope != 0.0f) {
      const auto first = static_cast<int32_t>(distance - i);
      LOOM_EACH(k) {
        const Vf d = __builtin_convertvector(first - vi_count(k), Vf);
        v.v[k] = v.v[k] - rule.slope * fmath::max<Vf>(d, -d);
      }
    }
    store16_n(x + i, v, n - i);
  }
}

// The weights of n positions, in place. x has memory for one more value if there is a sink; it is
// then the weight of the sink.
inline void weigh_scores(float* x, const ScoreRule& rule, int64_t distance, int64_t n) {
  if (rule.only_scales()) return softmax_row(x, rule.scale, n, x);
  softmax_inputs(x, rule, distance, n);
  if (rule.sink != nullptr) x[n] = *rule.sink;
  softmax_row(x, 1.0f, n + (rule.sink != nullptr ? 1 : 0), x);
}

inline void softmax(const SoftmaxArgs& a, const Lane& lane) {
  const LaneRange rows = lane.range(a.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r)
    softmax_row(a.x.f32_row(r), a.scale, a.x.cols(), a.y.f32_row(r));
}

// One block of 32: codes, scale and sums. x holds 32 values, zero padded.
LOOM_INLINE void quantize_block(const float* x, int8_t* codes, float* scale, int32_t* sum,
                                int32_t* half_sum) {
  Vi largest = vi_set(0);
  for (int i = 0; i < 32; i += kW) {
    const Vi magnitude = (Vi)vf_load(x + i) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  int32_t top = 0;
  for (int i = 0; i < kW; ++i) top = largest[i] > top ? largest[i] : top;
  const float absmax = fmath::from_bits<float>(top);
  const bool finite = top < 0x7f800000;
  float inv = finite && absmax > 0.0f ? 127.0f / absmax : 0.0f;
  *scale = finite ? absmax / 127.0f : absmax;
  if (finite && !(inv <= 3.40282347e38f)) inv = *scale = 0.0f;
  Vi total[2] = {vi_set(0), vi_set(0)};
  for (int i = 0; i < 32; i += kW) {
    const Vf scaled = vf_load(x + i) * inv;
    Vi q = scaled == scaled ? (Vi)fmath::round_to_int<Vf>(scaled) : vi_set(0);
    q = q > 127 ? vi_set(127) : q;
    q = q < -127 ? vi_set(-127) : q;
    typedef int8_t Vb __attribute__((vector_size(LOOM_SIMD_WIDTH)));
    const Vb bytes = __builtin_convertvector(q, Vb);
    std::memcpy(codes + i, &bytes, sizeof(bytes));
    total[i / 16] += q;
  }
  int32_t sums[2] = {0, 0};
  for (int i = 0; i < kW; ++i) {
    sums[0] += total[0][i];
    sums[1] += total[1][i];
  }
  *half_sum = sums[0];
  *sum = sums[0] + sums[1];
}

inline void quantize_rows(const QuantizeRowsArgs& a, const Lane& lane) {
  const int64_t n = a.x.cols();
  const int64_t blocks = a.q.blocks;
  const LaneRange work = lane.range(a.x.rows() * blocks);
  for (int64_t t = work.begin; t < work.end; ++t) {
    const int64_t r = t / blocks;
    const int64_t k = (t % blocks) * 32;
    const float* x = a.x.f32_row(r) + k;
    float padded[32] = {};
    if (n - k < 32) {
      for (int64_t i = 0; i < n - k; ++i) padded[i] = x[i];
      x = padded;
    }
    quantize_block(x, a.q.codes + r * a.q.padded_cols() + k, a.q.scales + t, a.q.sums + t,
                   a.q.half_sums + t);
  }
}

// Runs body(row, column, count) over all values of [rows, cols], sixteen columns at a time, shared
// among the lanes.
template <class Body>
LOOM_INLINE void each16(int64_t rows, int64_t cols, const Lane& lane, Body body) {
  const int64_t per_row = (cols + 15) / 16;
  const LaneRange work = lane.range(rows * per_row);
  int64_t t = work.begin;
  while (t < work.end) {
    const int64_t r = t / per_row;
    int64_t column = (t % per_row) * 16;
    for (; column < cols && t < work.end; column += 16, ++t) body(r, column, cols - column);
  }
}

template <UnaryKind kKind>
LOOM_INLINE Vf apply_unary(Vf x) {
  using enum UnaryKind;
  if constexpr (kKind == exp) return fmath::exp<Vf>(x);
  if constexpr (kKind == log) return fmath::log<Vf>(x);
  if constexpr (kKind == neg) return -x;
  if constexpr (kKind == abs) return fmath::abs<Vf>(x);
  if constexpr (kKind == square) return x * x;
  if constexpr (kKind == reciprocal) return 1.0f / x;
  if constexpr (kKind == step) return x >= 0.0f ? vf_set(1.0f) : vf_set(0.0f);
  if constexpr (kKind <= hard_swish) return activate<Vf>(static_cast<Activation>(kKind), x);
  return x;
}

template <UnaryKind kKind>
inline void unary_loop(const UnaryArgs& a, const Lane& lane) {
  each16(a.x.rows(), a.x.cols(), lane, [&](int64_t r, int64_t c, int64_t n) {
    V16 v = load16_n(a.x.f32_row(r) + c, n);
    LOOM_EACH(i) v.v[i] = apply_unary<kKind>(v.v[i]);
    store16_n(a.y.f32_row(r) + c, v, n);
  });
}

inline void unary(const UnaryArgs& a, const Lane& lane) {
  using enum UnaryKind;
  switch (a.kind) {
    case linear: return unary_loop<linear>(a, lane);
    case relu: return unary_loop<relu>(a, lane);
    case leaky_relu: return unary_loop<leaky_relu>(a, lane);
    case relu2: return unary_loop<relu2>(a, lane);
    case silu: return unary_loop<silu>(a, lane);
    case gelu_tanh: return unary_loop<gelu_tanh>(a, lane);
    case gelu_erf: return unary_loop<gelu_erf>(a, lane);
    case tanh: return unary_loop<tanh>(a, lane);
    case sigmoid: return unary_loop<sigmoid>(a, lane);
    case exp: return unary_loop<exp>(a, lane);
    case log: return unary_loop<log>(a, lane);
    case neg: return unary_loop<neg>(a, lane);
    case abs: return unary_loop<abs>(a, lane);
    case mish: return unary_loop<mish>(a, lane);
    case softplus: return unary_loop<softplus>(a, lane);
    case elu: return unary_loop<elu>(a, lane);
    case hard_swish: return unary_loop<hard_swish>(a, lane);
    case square: return unary_loop<square>(a, lane);
    case reciprocal: return unary_loop<reciprocal>(a, lane);
    case step: return unary_loop<step>(a, lane);
    case sqrt: return reference_ops().unary(a, lane);
  }
}

// x in every lane. set16 adds to 0, so it would lose the sign of -0.
LOOM_INLINE V16 same16(float x) {
  V16 r;
  LOOM_EACH(i) r.v[i] = x - Vf{};
  return r;
}

template <BinaryKind kKind>
inline void binary_loop(const BinaryArgs& a, const Lane& lane) {
  const bool one_row = a.b.rows() == 1, one_column = a.b.cols() == 1;
  each16(a.a.rows(), a.a.cols(), lane, [&](int64_t r, int64_t c, int64_t n) {
    V16 x = load16_n(a.a.f32_row(r) + c, n);
    const float* b = one_row ? a.b.f32() : a.b.f32_row(r);
    const V16 y = one_column ? same16(*b) : load16_n(b + c, n);
    LOOM_EACH(i) {
      if constexpr (kKind == BinaryKind::add) x.v[i] = x.v[i] + y.v[i];
      if constexpr (kKind == BinaryKind::sub) x.v[i] = x.v[i] - y.v[i];
      if constexpr (kKind == BinaryKind::mul) x.v[i] = x.v[i] * y.v[i];
      if constexpr (kKind == BinaryKind::div) x.v[i] = x.v[i] / y.v[i];
      if constexpr (kKind == BinaryKind::max) x.v[i] = fmath::max<Vf>(x.v[i], y.v[i]);
      if constexpr (kKind == BinaryKind::min) x.v[i] = fmath::min<Vf>(x.v[i], y.v[i]);
    }
    store16_n(a.y.f32_row(r) + c, x, n);
  });
}

inline void binary(const BinaryArgs& a, const Lane& lane) {
  switch (a.kind) {
    case BinaryKind::add: return binary_loop<BinaryKind::add>(a, lane);
    case BinaryKind::sub: return binary_loop<BinaryKind::sub>(a, lane);
    case BinaryKind::mul: return binary_loop<BinaryKind::mul>(a, lane);
    case BinaryKind::div: return binary_loop<BinaryKind::div>(a, lane);
    case BinaryKind::max: return binary_loop<BinaryKind::max>(a, lane);
    case BinaryKind::min: return binary_loop<BinaryKind::min>(a, lane);
  }
}

inline void gated(const GatedArgs& a, const Lane& lane) {
  each16(a.gate.rows(), a.gate.cols(), lane, [&](int64_t r, int64_t c, int64_t n) {
    V16 g = load16_n(a.gate.f32_row(r) + c, n);
    const V16 u = load16_n(a.up.f32_row(r) + c, n);
    LOOM_EACH(i) g.v[i] = activate<Vf>(a.activation, g.v[i]) * u.v[i];
    store16_n(a.y.f32_row(r) + c, g, n);
  });
}

inline void rope(const RopeArgs& a, const Lane& lane) {
  const LaneRange rows = lane.range(a.x.rows());
  const int64_t width = a.x.cols() / a.heads;
  const int64_t rotary_dim = a.rotary_dim > 0 ? a.rotary_dim : width;
  const int64_t half = rotary_dim / 2;
  const float turn = a.inverse ? -1.0f : 1.0f;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t in_run = a.length > 0 ? r % a.length : r;
    const int64_t position =
        a.row_positions.empty() ? a.first + in_run : place_of(a.row_positions, r, 0).position;
    const float* cos = a.cos.f32_row(position);
    const float* sin = a.sin.f32_row(position);
    for (int64_t h = 0; h < a.heads; ++h) {
      const float* from = a.x.f32_row(r) + h * width;
      float* to = a.y.f32_row(r) + h * width;
      for (int64_t j = 0; j < half; j += 16) {
        const int64_t n = half - j;
        V16 x = load16_n(from + j, n);
        V16 y = load16_n(from + half + j, n);
        const V16 c = load16_n(cos + j, n);
        const V16 s = load16_n(sin + j, n);
        LOOM_EACH(i) {
          const Vf angle = s.v[i] * turn;  // exact
          const Vf rotated = x.v[i] * c.v[i] - y.v[i] * angle;
          y.v[i] = x.v[i] * angle + y.v[i] * c.v[i];
          x.v[i] = rotated;
        }
        store16_n(to + j, x, n);
        store16_n(to + half + j, y, n);
      }
      for (int64_t j = rotary_dim; j < width; ++j) to[j] = from[j];
    }
  }
}
