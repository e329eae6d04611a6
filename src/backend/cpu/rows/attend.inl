// attend and attend_dx: self-attention of whole sequences as matrix products, one head at a time,
// in blocks of rows. A position that a row does not see has weight +0 in these products. Such a
// term leaves every sum unchanged if the other factor is finite. The only exception is -0, which
// becomes +0, and no sum ends at -0 (from_zero16). Rows run one by one, over exactly the positions
// that they see, in two cases: a value is not finite, or rows of a block start at different
// positions of different chunks.

// Columns of a matrix; masked rows count as zeros. `mask` may be null.
struct MaskedPanels {
  const float* b;
  int64_t stride, cols;
  const float* mask;
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    const float* from = b + first * stride + group * 16;
    const int64_t left = cols - group * 16;
    for (int64_t k = 0; k < n; ++k) {
      const bool hidden = mask != nullptr && mask[first + k] == 0.0f;
      store16(to + k * 16, hidden ? set16(0.0f) : load16_n(from + k * stride, left));
    }
  }
};

// Whether rows [begin, end) of a matrix hold no infinity and no NaN. Masked rows do not count.
inline bool finite_rows(const float* x, int64_t stride, int64_t cols, const float* mask,
                        int64_t begin, int64_t end) {
  V16 sum = set16(0.0f);
  for (int64_t r = begin; r < end; ++r) {
    if (mask != nullptr && mask[r] == 0.0f) continue;
    for (int64_t c = 0; c < cols; c += 16) {
      const V16 v = load16_n(x + r * stride + c, cols - c);
      LOOM_EACH(i) sum.v[i] = sum.v[i] + v.v[i] * 0.0f;  // NaN as soon as one is not finite
    }
  }
  return fold16(sum, JoinSum{}) == 0.0f;
}

// One head of one sequence; rows and positions are counted from the start of the sequence.
struct Head {
  template <class Args>
  Head(const Args& a, int64_t sequence, int64_t head)
      : length(a.q.rows() / a.sequences),
        width(a.q.cols() / a.heads),
        window(a.window),
        causal(a.causal),
        rule{a.scale, a.soft_cap, a.slopes.empty() ? 0.0f : a.slopes.f32()[head],
             a.sinks.empty() ? nullptr : a.sinks.f32() + head},
        mask(a.mask.empty() ? nullptr : a.mask.f32_row(sequence)),
        row_positions(a.row_positions),
        first(sequence * length) {
    const int64_t kv = head / (a.heads / a.kv_heads);
    q = a.q.f32_row(sequence * length) + head * width;
    k = a.k.f32_row(sequence * length) + kv * width;
    v = a.v.f32_row(sequence * length) + kv * width;
    q_stride = a.q.row_stride, k_stride = a.k.row_stride, v_stride = a.v.row_stride;
  }

  // Positions that causality, the window and the begin of its document allow a row.
  LaneRange allowed(int64_t row) const {
    const int64_t after = row + 1;
    int64_t begin = window > 0 && after > window ? after - window : 0;
    if (!row_positions.empty()) {
      const int64_t start = row - place_of(row_positions, first + row, 0).position;
      if (start > begin) begin = start;
    }
    if (causal) return {begin, after};
    return {begin, window > 0 && length - row > window ? row + window : length};
  }
  // The union of the positions that the rows of a block see.
  LaneRange allowed_rows(LaneRange rows) const {
    return {allowed(rows.begin).begin, allowed(rows.end - 1).end};
  }
  bool hides(int64_t position) const { return mask != nullptr && mask[position] == 0.0f; }

  int64_t length, width, window;
  bool causal;
  ScoreRule rule;
  const float* mask;
  Tensor row_positions;
  int64_t first;  // row of the sequence
  const float *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
};

// Rows of weights or of their gradients, one value per position: row r is at (r - first) * stride.
struct Weights {
  float* at;
  int64_t stride, first;
  float* row(int64_t r) const { return at + (r - first) * stride; }
};

// w[r][p] = a[r] . b[p] over the width. Covers all positions that the block sees, and up to fifteen
// more.
inline void dot_rows(const Head& h, const float* a, int64_t a_stride, const float* b,
                     int64_t b_stride, LaneRange rows, const Weights& w, float* scratch) {
  const LaneRange seen = h.allowed_rows(rows);
  const Product<RowsOf, TransposedPanels> product{{a, a_stride},
                                                  {b, b_stride, h.length},
                                                  h.width,
                                                  w.stride,
                                                  w.at - w.first * w.stride,
                                                  w.stride,
                                                  false,
                                                  scratch};
  product.run(rows, {seen.begin / 16, (seen.end + 15) / 16});
}

// The softmax of n scores from `begin` on, some of which a mask hides.
inline void weigh_masked(const Head& h, int64_t row, int64_t begin, int64_t n, float* x) {
  softmax_inputs(x, h.rule, row - begin, n);
  for (int64_t i = 0; i < n; ++i) {
    if (h.hides(begin + i)) x[i] = -__builtin_inff();
  }
  if (h.rule.sink != nullptr) x[n] = *h.rule.sink;
  softmax_row(x, 1.0f, n + (h.rule.sink != nullptr ? 1 : 0), x);
  for (int64_t i = 0; i < n; ++i) {
    if (h.hides(begin + i)) x[i] = 0.0f;
  }
}

// Turns the scores of a block into weights: 0 if a row does not see a position of the block. Those
// of a sink go to sinks[row * sink_stride], if it is not null.
inline void weigh_rows(const Head& h, LaneRange rows, const Weights& w, float* sinks = nullptr,
                       int64_t sink_stride = 0) {
  const LaneRange seen = h.allowed_rows(rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const LaneRange own = h.allowed(r);
    float* const row = w.row(r);
    const int64_t n = own.end - own.begin;
    if (h.mask != nullptr) {
      weigh_masked(h, r, own.begin, n, row + own.begin);
    } else {
      weigh_scores(row + own.begin, h.rule, r - own.begin, n);
    }
    if (sinks != nullptr) sinks[r * sink_stride] = row[own.end];
    for (int64_t p = seen.begin; p < own.begin; ++p) row[p] = 0.0f;
    for (int64_t p = own.end; p < seen.end; ++p) row[p] = 0.0f;
  }
}

// y[r] = the sum over positions of w[r][p] * x[p].
inline void sum_positions(const Head& h, const float* x, int64_t x_stride, LaneRange rows,
                          const Weights& w, float* y, int64_t y_stride, float* scratch) {
  const LaneRange seen = h.allowed_rows(rows);
  const bool same_start =
      h.allowed(rows.end - 1).begin == seen.begin || seen.end - seen.begin <= kChunk;
  const bool together =
      same_start && finite_rows(x, x_stride, h.width, h.mask, seen.begin, seen.end);
  const int64_t step = together ? rows.end - rows.begin : 1;
  for (int64_t r = rows.begin; r < rows.end; r += step) {
    const LaneRange own = h.allowed_rows({r, r + step});
    const float* const mask = h.mask == nullptr ? nullptr : h.mask + own.begin;
    const Product<RowsOf, MaskedPanels> product{{w.row(r) + own.begin, w.stride},
                                                {x + own.begin * x_stride, x_stride, h.width, mask},
                                                own.end - own.begin,
                                                h.width,
                                                y + r * y_stride,
                                                y_stride,
                                                false,
                                                scratch};
    product.run({0, step}, {0, (h.width + 15) / 16});
  }
}

inline void attend_sequences(const AttendArgs& a, const Lane& lane) {
  const int64_t length = a.sequences == 0 ? 0 : a.q.rows() / a.sequences;
  if (length == 0 || a.q.cols() == 0) return;
  const int64_t stride = round_up(a.score_count(), kFloatTileGroups * 16);
  const int64_t room = lane.scratch_bytes / 4 - kPanelFloats;
  int64_t block = a.causal ? 48 : kHeldRows;
  while (block * (stride + kCopyStride) > room) block /= 2;
  if (block == 0) return reference_ops().attend(a, lane);
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  float* const weights = scratch + kPanelFloats + block * kCopyStride;
  const int64_t blocks = (length + block - 1) / block;
  const LaneRange work = lane.range(a.sequences * a.heads * blocks);
  for (int64_t t = work.begin; t < work.end; ++t) {
    const int64_t sequence = t / blocks / a.heads, head = t / blocks % a.heads;
    const Head h(a, sequence, head);
    const LaneRange rows =
        lane_range(length, 1, static_cast<int>(t % blocks), static_cast<int>(blocks));
    const Weights w{weights, stride, rows.begin};
    dot_rows(h, h.q, h.q_stride, h.k, h.k_stride, rows, w, scratch);
    weigh_rows(h, rows, w);
    sum_positions(h, h.v, h.v_stride, rows, w, a.y.f32_row(sequence * length) + head * h.width,
                  a.y.row_stride, scratch);
  }
}

// ---- gradients ----

// The slopes of the cap, 1 - tanh(s / cap)^2, from scores that are not scaled yet.
inline void cap_slopes(const Head& h, LaneRange rows, const Weights& scores, const Weights& to) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const LaneRange own = h.allowed(r);
    for (int64_t i = own.begin; i < own.end; i += 16) {
      V16 v = load16_n(scores.row(r) + i, own.end - i);
      LOOM_EACH(k) {
        const Vf bent = fmath::tanh<Vf>(v.v[k] * h.rule.scale / h.rule.soft_cap);
        v.v[k] = 1.0f - bent * bent;
      }
      store16_n(to.row(r) + i, v, own.end - i);
    }
  }
}

// dS from P and dP: (P * (dP - rowsum(P * dP))) * scale, 0 where a row does not see a position;
// with a cap times `slopes` before scale. `sinks` has weights and gets gradients.
inline void score_gradients(const Head& h, LaneRange rows, const Weights& p, const Weights& d,
                            const Weights& slopes, float* sinks, int64_t sink_stride) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const LaneRange own = h.allowed(r);
    const float* const weight = p.row(r);
    float* const gradient = d.row(r);
    for (int64_t i = own.begin; h.mask != nullptr && i < own.end; ++i) {
      if (h.hides(i)) gradient[i] = 0.0f;
    }
    const int64_t n = own.end - own.begin;
    const float dot = reduce_sum(n, [&](int64_t i, int64_t m) {
      return mul16(load16_n(weight + own.begin + i, m), load16_n(gradient + own.begin + i, m));
    });
    if (sinks != nullptr) sinks[r * sink_stride] = -(sinks[r * sink_stride] * dot);
    for (int64_t i = own.begin; i < own.end; i += 16) {
      V16 g = load16_n(gradient + i, own.end - i);
      const V16 w = load16_n(weight + i, own.end - i);
      LOOM_EACH(k) g.v[k] = w.v[k] * (g.v[k] - dot);
      if (h.rule.soft_cap > 0) g = mul16(g, load16_n(slopes.row(r) + i, own.end - i));
      LOOM_EACH(k) g.v[k] = g.v[k] * h.rule.scale;
      store16_n(gradient + i, g, own.end - i);
    }
    for (int64_t i = own.begin; h.mask != nullptr && i < own.end; ++i) {
      if (h.hides(i)) gradient[i] = 0.0f;
    }
    for (int64_t i = 0; i < own.begin; ++i) gradient[i] = 0.0f;
    for (int64_t i = own.end; i < h.length; ++i) gradient[i] = 0.0f;
  }
}

// to[p] (+)= the sum over all rows of w[r][p] * x[r].
inline void sum_rows(const Head& h, const Weights& w, const float* x, int64_t x_stride, float* to,
                     int64_t stride, bool accumulate, float* scratch) {
  const Product<ColumnsOf, PlainPanels> product{{w.at, w.stride, h.length},
                                                {x, x_stride, h.width},
                                                h.length,
                                                h.width,
                                                to,
                                                stride,
                                                accumulate,
                                                scratch};
  product.run({0, h.length}, {0, (h.width + 15) / 16});
}

// The columns of one kv head, or of the heads that share it, in one sequence.
inline Tensor part_of(const Tensor& t, int64_t first, int64_t rows, int64_t column, int64_t cols) {
  Tensor part = t;
  if (t.empty()) return part;
  part.shape = Shape{rows, cols};
  part.data = reinterpret_cast<std::byte*>(t.f32_row(first) + column);
  return part;
}

// One kv head of one sequence as arguments of its own.
inline AttendDxArgs one_kv_head(const AttendDxArgs& a, int64_t sequence, int64_t kv) {
  const int64_t length = a.q.rows() / a.sequences, width = a.q.cols() / a.heads;
  const int64_t shared = a.heads / a.kv_heads, first = sequence * length;
  const auto wide = [&](const Tensor& t) {
    return part_of(t, first, length, kv * shared * width, shared * width);
  };
  const auto narrow = [&](const Tensor& t) { return part_of(t, first, length, kv * width, width); };
  AttendDxArgs one = a;
  one.q = wide(a.q), one.dy = wide(a.dy), one.dq = wide(a.dq);
  one.k = narrow(a.k), one.v = narrow(a.v), one.dk = narrow(a.dk), one.dv = narrow(a.dv);
  one.mask = part_of(a.mask, sequence, 1, 0, length);
  if (!a.row_positions.empty()) one.row_positions = a.row_positions.slice_rows(first, length);
  one.slopes = part_of(a.slopes, 0, 1, kv * shared, shared);
  one.sinks = part_of(a.sinks, 0, 1, kv * shared, shared);
  one.dsinks = part_of(a.dsinks, first, length, kv * shared, shared);
  one.sequences = one.kv_heads = 1;
  one.heads = shared;
  return one;
}

// Head `index` of arguments with one sequence and one kv head. False if a value is not finite.
inline bool head_gradient(const AttendDxArgs& a, int64_t index, int64_t stride, float* scratch) {
  const Head h(a, 0, index);
  const float* const dy = a.dy.f32() + index * h.width;
  const LaneRange all = {0, h.length};
  const auto finite = [&](const float* x, int64_t x_stride, const float* mask) {
    return finite_rows(x, x_stride, h.width, mask, 0, h.length);
  };
  if (!finite(h.q, h.q_stride, nullptr) || !finite(dy, a.dy.row_stride, nullptr)) return false;
  const Weights p{scratch + kMatmulScratch / 4, stride, 0};
  const Weights d{p.at + h.length * stride, stride, 0};
  const Weights slopes{d.at + h.length * stride, stride, 0};  // has memory if there is a cap
  float* const sinks = h.rule.sink == nullptr ? nullptr : a.dsinks.f32() + index;
  std::memset(p.at, 0, static_cast<size_t>(h.length * stride) * 4);
  for (int64_t begin = 0; begin < all.end; begin += kHeldRows) {
    const LaneRange rows = {begin, all.end - begin < kHeldRows ? all.end : begin + kHeldRows};
    dot_rows(h, h.q, h.q_stride, h.k, h.k_stride, rows, p, scratch);
    if (h.rule.soft_cap > 0) cap_slopes(h, rows, p, slopes);
    weigh_rows(h, rows, p, sinks, a.dsinks.row_stride);
    const LaneRange seen = h.allowed_rows(rows);
    for (int64_t r = rows.begin; r < rows.end; ++r) {  // positions of tiles outside the block
      for (int64_t i = seen.begin / 16 * 16; i < seen.begin; ++i) p.row(r)[i] = 0.0f;
      for (int64_t i = seen.end; i < stride; ++i) p.row(r)[i] = 0.0f;
    }
    dot_rows(h, dy, a.dy.row_stride, h.v, h.v_stride, rows, d, scratch);
    score_gradients(h, rows, p, d, slopes, sinks, a.dsinks.row_stride);
    sum_positions(h, h.k, h.k_stride, rows, d, a.dq.f32() + index * h.width, a.dq.row_stride,
                  scratch);
  }
  sum_rows(h, p, dy, a.dy.row_stride, a.dv.f32(), a.dv.row_stride, index > 0, scratch);
  sum_rows(h, d, h.q, h.q_stride, a.dk.f32(), a.dk.row_stride, index > 0, scratch);
  return true;
}

inline void attend_dx(const AttendDxArgs& a, const Lane& lane) {
  const int64_t length = a.sequences == 0 ? 0 : a.q.rows() / a.sequences;
  const int64_t stride = round_up(a.score_count(), kFloatTileGroups * 16);
  const int64_t matrices = a.soft_cap > 0 ? 3 : 2;
  if (kMatmulScratch + matrices * length * stride * 4 > lane.scratch_bytes)
    return reference_ops().attend_dx(a, lane);
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  const LaneRange work = lane.range(a.sequences * a.kv_heads);
  for (int64_t t = work.begin; t < work.end && length > 0; ++t) {
    const AttendDxArgs one = one_kv_head(a, t / a.kv_heads, t % a.kv_heads);
    bool done = true;
    for (int64_t h = 0; h < one.heads && done; ++h) done = head_gradient(one, h, stride, scratch);
    if (!done) reference_ops().attend_dx(one, Lane{0, 1, lane.scratch, lane.scratch_bytes});
  }
}
