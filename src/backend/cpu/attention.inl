// Attention over the KV cache. Heads that share a kv head run together, so each key and value is
// loaded once for up to four of them. Scores of 16 positions are one vector (keys are stored
// [position/16][D][16]); chains and sums follow rules 2 and 4 of docs/numerics.md.

constexpr int kScoreBlocks = 4;  // 64 positions at a time

// scores[h][p] = q_h . k_p for p in [0, groups * 16), not yet scaled; D <= 256 is one chain.
template <int H>
LOOM_INLINE void score_groups(const float* const* q, const float* keys, int64_t d, int64_t groups,
                              float* scores, int64_t stride) {
  for (int64_t g = 0; g < groups; g += kScoreBlocks) {
    V16 s[H][kScoreBlocks];
    const float* k[kScoreBlocks];
    LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) k[b] =
        keys + (g + b < groups ? g + b : groups - 1) * d * 16;
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) s[h][b] = set16(0.0f);
    }
    for (int64_t j = 0; j < d; ++j) {
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) {
        LOOM_EACH(i) {
          const Vf key = vf_load(k[b] + j * 16 + i * kW);
          LOOM_UNROLL for (int h = 0; h < H; ++h) s[h][b].v[i] = vf_fma(key, q[h][j], s[h][b].v[i]);
        }
      }
    }
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b)
          store16(scores + h * stride + (g + b) * 16, from_zero16(s[h][b]));
    }
  }
}

// out_h[d] = sum over p in [lo, hi) of w_h[p] * v[p][d], in chunks of 256 positions from lo, for 64
// values of d or fewer.
template <int H, int B>
LOOM_INLINE void weigh_values(const float* weights, int64_t stride, const float* values, int64_t d,
                              int64_t lo, int64_t hi, float* const* out) {
  V16 total[H][B];
  for (int64_t begin = lo; begin < hi; begin += 256) {
    const int64_t end = hi - begin < 256 ? hi : begin + 256;
    V16 s[H][B];
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < B; ++b) s[h][b] = set16(0.0f);
    }
    for (int64_t p = begin; p < end; ++p) {
      LOOM_UNROLL for (int b = 0; b < B; ++b) {
        LOOM_EACH(i) {
          const Vf v = vf_load(values + p * d + b * 16 + i * kW);
          LOOM_UNROLL for (int h = 0; h < H; ++h) s[h][b].v[i] =
              vf_fma(v, weights[h * stride + p], s[h][b].v[i]);
        }
      }
    }
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < B; ++b) total[h][b] =
          begin == lo ? from_zero16(s[h][b]) : add16(total[h][b], s[h][b]);
    }
  }
  LOOM_UNROLL for (int h = 0; h < H; ++h) {
    LOOM_UNROLL for (int b = 0; b < B; ++b) store16(out[h] + b * 16, total[h][b]);
  }
}

// H heads [head, head + H) of one kv head, one row.
template <int H>
void attend(const AttentionArgs& a, int64_t row, int64_t head, float* scores) {
  const int64_t d = a.cache.head_dim;
  const int64_t kv = head / (a.heads / a.cache.kv_heads);
  const float* keys = a.cache.keys + kv * a.cache.capacity * d;
  const float* values = a.cache.values + kv * a.cache.capacity * d;
  int64_t hi = a.causal ? a.first + row + 1 : a.length;
  if (!a.causal && a.window > 0 && a.first + row + a.window < hi) hi = a.first + row + a.window;
  int64_t lo = 0;
  if (a.window > 0 && a.first + row + 1 > a.window) lo = a.first + row + 1 - a.window;
  const int64_t first_group = lo / 16;
  const int64_t groups = (hi + 15) / 16 - first_group;
  const int64_t stride = round_up(hi + 64, 64);
  const float* q[H];
  float* out[H];
  LOOM_UNROLL for (int h = 0; h < H; ++h) q[h] = a.q.f32_row(row) + (head + h) * d;
  float* shifted = scores - first_group * 16;  // index by position
  score_groups<H>(q, keys + first_group * 16 * d, d, groups, scores, stride);
  LOOM_UNROLL for (int h = 0; h < H; ++h) {
    float* s = shifted + h * stride + lo;
    if (a.soft_cap > 0) cap_row(s, a.scale, a.soft_cap, hi - lo);
    softmax_row(s, a.soft_cap > 0 ? 1.0f : a.scale, hi - lo, s);
  }
  int64_t j = 0;
  for (; j + 64 <= d; j += 64) {
    LOOM_UNROLL for (int h = 0; h < H; ++h) out[h] = a.y.f32_row(row) + (head + h) * d + j;
    weigh_values<H, 4>(shifted, stride, values + j, d, lo, hi, out);
  }
  for (; j < d; j += 16) {
    LOOM_UNROLL for (int h = 0; h < H; ++h) out[h] = a.y.f32_row(row) + (head + h) * d + j;
    weigh_values<H, 1>(shifted, stride, values + j, d, lo, hi, out);
  }
}

// Heads [begin, end) of one row, up to four of one kv head at a time.
inline void attend_heads(const AttentionArgs& a, int64_t row, int64_t begin, int64_t end,
                         float* scores) {
  const int64_t shared = a.heads / a.cache.kv_heads;
  for (int64_t h = begin; h < end;) {
    const int64_t group_end = (h / shared + 1) * shared;
    const int64_t limit = group_end < end ? group_end : end;
    const int64_t n = limit - h < 4 ? limit - h : 4;
    if (n == 4) attend<4>(a, row, h, scores);
    if (n == 3) attend<3>(a, row, h, scores);
    if (n == 2) attend<2>(a, row, h, scores);
    if (n == 1) attend<1>(a, row, h, scores);
    h += n;
  }
}

inline void attention(const AttentionArgs& a, const Lane& lane) {
  const int64_t d = a.cache.head_dim;
  const bool empty = !a.causal && a.length == 0;
  if (d % 16 != 0 || d > kChunk || empty) return reference_ops().attention(a, lane);
  auto* scores = reinterpret_cast<float*>(lane.scratch);
  const int64_t rows = a.q.rows();
  if (rows < 2 * lane.count) {
    const LaneRange work = lane.range(rows * a.heads);
    for (int64_t t = work.begin; t < work.end;) {
      const int64_t row = t / a.heads;
      const int64_t end = (row + 1) * a.heads < work.end ? (row + 1) * a.heads : work.end;
      attend_heads(a, row, t - row * a.heads, end - row * a.heads, scores);
      t = end;
    }
    return;
  }
  // Later rows see more positions: dealing rows out in turn keeps the lanes even.
  for (int64_t row = lane.index; row < rows; row += lane.count)
    attend_heads(a, row, 0, a.heads, scores);
}
