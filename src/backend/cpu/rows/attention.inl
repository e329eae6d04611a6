// Attention over the KV cache, read as it is stored. Heads that share a kv head run together, so
// each key and value is loaded once for up to kHeadsAtOnce of them. Scores of 16 positions are one
// vector (keys are stored [position/16][D][16]); chains and sums follow rules 2 and 4 of
// docs/numerics.md.

constexpr int kScoreBlocks = 4;  // 64 positions at a time

#if LOOM_SIMD_WIDTH == 4 && !defined(__aarch64__)
constexpr int kHeadsAtOnce = 2;  // 16 registers of 128 bits: more heads spill, and cost code
#else
constexpr int kHeadsAtOnce = 4;
#endif

// Numbers of a cache in stored form: number d of `wide` adjacent ones (16 positions of keys, or one
// of values), from lane `i` on. If kBlocks, each is multiplied by the step of its block of 32. The
// product is exact.
struct CacheF32 {
  static constexpr bool kBlocks = false;
  static constexpr int64_t kBits = 32;
  static LOOM_INLINE Vf at(const std::byte* p, int64_t d, int64_t wide, int64_t i) {
    return vf_load(reinterpret_cast<const float*>(p) + d * wide + i);
  }
};
struct CacheF16 {
  static constexpr bool kBlocks = false;
  static constexpr int64_t kBits = 16;
  static LOOM_INLINE Vf at(const std::byte* p, int64_t d, int64_t wide, int64_t i) {
    return vf_from_f16(reinterpret_cast<const uint16_t*>(p) + d * wide + i);
  }
};
struct CacheBf16 {
  static constexpr bool kBlocks = false;
  static constexpr int64_t kBits = 16;
  static LOOM_INLINE Vf at(const std::byte* p, int64_t d, int64_t wide, int64_t i) {
    return vf_from_bf16(reinterpret_cast<const uint16_t*>(p) + d * wide + i);
  }
};
struct CacheQ8 {
  static constexpr bool kBlocks = true;
  static constexpr int64_t kBits = 8;
  static LOOM_INLINE Vf at(const std::byte* p, int64_t d, int64_t wide, int64_t i) {
    return __builtin_convertvector(vi_from_i8(p + d * wide + i), Vf);
  }
};
// Numbers d and d + 16 of a block are in one byte.
struct CacheQ4 {
  static constexpr bool kBlocks = true;
  static constexpr int64_t kBits = 4;
  static LOOM_INLINE Vf at(const std::byte* p, int64_t d, int64_t wide, int64_t i) {
    const Vi pairs = vi_from_u8(p + (d / 32 * 16 + d % 16) * wide + i);
    return __builtin_convertvector(((pairs >> ((d & 16) / 4)) & 15) - 8, Vf);
  }
};

// Keys or values of one head of one sequence: the numbers, the steps if the type has any (f16), and
// the locations of groups of 16 positions if they are not contiguous (ops/recording/pages.hpp).
struct CacheSide {
  const std::byte* numbers;
  const uint16_t* steps;
  const int32_t* pages;
  LOOM_INLINE int64_t group(int64_t g) const { return pages != nullptr ? pages[g] : g; }
  // The end of the contiguous run of positions from p, at most `end`, and the location of p.
  LOOM_INLINE int64_t run_end(int64_t p, int64_t end) const {
    const int64_t next = p / 16 * 16 + 16;
    return pages != nullptr && next < end ? next : end;
  }
  LOOM_INLINE int64_t offset_of(int64_t p) const {
    return pages != nullptr ? int64_t{pages[p / 16]} * 16 + p % 16 : p;
  }
};
template <class Cell>
CacheSide cache_side(const KvCache& all, bool keys, const RowPosition& row_position,
                     const int32_t* pages, int64_t head) {
  const KvCache cache = all.sequence(row_position.sequence);
  const std::byte* own = keys ? cache.keys : cache.values;
  const int64_t before = head * cache.capacity * cache.head_dim;
  const std::byte* behind = own + cache.sequence_numbers() * Cell::kBits / 8;
  return {own + before * Cell::kBits / 8, reinterpret_cast<const uint16_t*>(behind) + before / 32,
          pages};
}

// scores[h][p] = q_h . k_p, not yet scaled, for p in [0, groups * 16) from group `first` on. Each
// is one chain, as D <= 256.
template <int H, class Cell>
LOOM_INLINE void score_groups(const float* const* q, const CacheSide& keys, int64_t d,
                              int64_t first, int64_t groups, float* scores, int64_t stride) {
  const int64_t span = Cell::kBlocks ? 32 : d;  // numbers that share a step
  for (int64_t g = 0; g < groups; g += kScoreBlocks) {
    V16 s[H][kScoreBlocks];
    int64_t group[kScoreBlocks];
    LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) group[b] =
        keys.group(first + (g + b < groups ? g + b : groups - 1));
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) s[h][b] = set16(0.0f);
    }
    for (int64_t from = 0; from < d; from += span) {
      [[maybe_unused]] V16 step[kScoreBlocks];
      if constexpr (Cell::kBlocks) {
        LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) {
          const uint16_t* steps = keys.steps + (group[b] * (d / 32) + from / 32) * 16;
          LOOM_EACH(i) step[b].v[i] = vf_from_f16(steps + i * kW);
        }
      }
      const std::byte* k[kScoreBlocks];
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) k[b] =
          keys.numbers + group[b] * d * 16 * Cell::kBits / 8;
      for (int64_t j = from; j < from + span; ++j) {
        LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b) {
          LOOM_EACH(i) {
            Vf key = Cell::at(k[b], j, 16, i * kW);
            if constexpr (Cell::kBlocks) key = key * step[b].v[i];
            LOOM_UNROLL for (int h = 0; h < H; ++h) s[h][b].v[i] =
                vf_fma(key, q[h][j], s[h][b].v[i]);
          }
        }
      }
    }
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < kScoreBlocks; ++b)
          store16(scores + h * stride + (g + b) * 16, from_zero16(s[h][b]));
    }
  }
}

// The steps of positions [begin, end) of values, at most 256 of D <= 256, as f32: [p][D/32].
template <class Cell>
LOOM_INLINE void value_steps(const CacheSide& values, int64_t d, int64_t begin, int64_t end,
                             float* out) {
  if constexpr (Cell::kBlocks) {
    for (int64_t p = begin; p < end;) {
      const int64_t run = values.run_end(p, end) - p;
      const uint16_t* from = values.steps + values.offset_of(p) * (d / 32);
      const int64_t count = run * (d / 32);
      int64_t i = 0;
      for (; i + kW <= count; i += kW) vf_store(out + i, vf_from_f16(from + i));
      for (; i < count; ++i) out[i] = f32_from_f16(from[i]);
      p += run;
      out += count;
    }
  }
}

// out_h[d] = the sum over p in [lo, hi) of w_h[p] * v[p][d]. Chunks have 256 positions, counted
// from lo. Covers at most 64 values of d, from `col` on.
template <int H, int B, class Cell>
LOOM_INLINE void weigh_values(const float* weights, int64_t stride, const CacheSide& values,
                              int64_t d, int64_t col, int64_t lo, int64_t hi, float* const* out) {
  V16 total[H][B];
  float steps[Cell::kBlocks ? 256 * 8 : 1];
  for (int64_t begin = lo; begin < hi; begin += 256) {
    const int64_t end = hi - begin < 256 ? hi : begin + 256;
    value_steps<Cell>(values, d, begin, end, steps);
    V16 s[H][B];
    LOOM_UNROLL for (int h = 0; h < H; ++h) {
      LOOM_UNROLL for (int b = 0; b < B; ++b) s[h][b] = set16(0.0f);
    }
    for (int64_t p = begin; p < end;) {
      const int64_t run_end = values.run_end(p, end);
      const std::byte* row = values.numbers + values.offset_of(p) * d * Cell::kBits / 8;
      for (; p < run_end; ++p, row += d * Cell::kBits / 8) {
        LOOM_UNROLL for (int b = 0; b < B; ++b) {
          LOOM_EACH(i) {
            Vf v = Cell::at(row, col + b * 16, 1, i * kW);
            if constexpr (Cell::kBlocks)
              v = v * steps[(p - begin) * (d / 32) + (col + b * 16) / 32];
            LOOM_UNROLL for (int h = 0; h < H; ++h) s[h][b].v[i] =
                vf_fma(v, weights[h * stride + p], s[h][b].v[i]);
          }
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
template <int H, class Cell>
void attend(const AttentionArgs& a, int64_t row, int64_t head, float* scores) {
  const int64_t d = a.cache.head_dim;
  const int64_t kv = head / (a.heads / a.cache.kv_heads);
  const RowPosition row_position = place_of(a.row_positions, row, a.first);
  const int64_t position = row_position.position;
  const int32_t* pages = pages_of(a.row_positions, row);
  const CacheSide keys = cache_side<Cell>(a.cache, true, row_position, pages, kv);
  const CacheSide values = cache_side<Cell>(a.cache, false, row_position, pages, kv);
  int64_t hi = a.causal ? position + 1 : a.length;
  if (!a.causal && a.window > 0 && position + a.window < hi) hi = position + a.window;
  int64_t lo = 0;
  if (a.window > 0 && position + 1 > a.window) lo = position + 1 - a.window;
  const int64_t first_group = lo / 16;
  const int64_t groups = (hi + 15) / 16 - first_group;
  const int64_t stride = round_up(hi + 64, 64);
  const float* q[H];
  float* out[H];
  LOOM_UNROLL for (int h = 0; h < H; ++h) q[h] = a.q.f32_row(row) + (head + h) * d;
  float* shifted = scores - first_group * 16;  // index by position
  score_groups<H, Cell>(q, keys, d, first_group, groups, scores, stride);
  LOOM_UNROLL for (int h = 0; h < H; ++h) {
    const ScoreRule rule{a.scale, a.soft_cap, a.slopes.empty() ? 0.0f : a.slopes.f32()[head + h],
                         a.sinks.empty() ? nullptr : a.sinks.f32() + head + h};
    weigh_scores(shifted + h * stride + lo, rule, position - lo, hi - lo);
  }
  int64_t j = 0;
  for (; j + 64 <= d; j += 64) {
    LOOM_UNROLL for (int h = 0; h < H; ++h) out[h] = a.y.f32_row(row) + (head + h) * d + j;
    weigh_values<H, 4, Cell>(shifted, stride, values, d, j, lo, hi, out);
  }
  for (; j < d; j += 16) {
    LOOM_UNROLL for (int h = 0; h < H; ++h) out[h] = a.y.f32_row(row) + (head + h) * d + j;
    weigh_values<H, 1, Cell>(shifted, stride, values, d, j, lo, hi, out);
  }
}

// Heads [begin, end) of one row, up to kHeadsAtOnce of one kv head at a time.
template <class Cell>
void attend_heads(const AttentionArgs& a, int64_t row, int64_t begin, int64_t end, float* scores) {
  const int64_t shared = a.heads / a.cache.kv_heads;
  for (int64_t h = begin; h < end;) {
    const int64_t group_end = (h / shared + 1) * shared;
    const int64_t limit = group_end < end ? group_end : end;
    const int64_t n = limit - h < kHeadsAtOnce ? limit - h : kHeadsAtOnce;
    if constexpr (kHeadsAtOnce == 4) {
      if (n == 4) attend<4, Cell>(a, row, h, scores);
      if (n == 3) attend<3, Cell>(a, row, h, scores);
    }
    if (n == 2) attend<2, Cell>(a, row, h, scores);
    if (n == 1) attend<1, Cell>(a, row, h, scores);
    h += n;
  }
}

template <class Cell>
void attention_of(const AttentionArgs& a, const Lane& lane) {
  auto* scores = reinterpret_cast<float*>(lane.scratch);
  const int64_t rows = a.q.rows();
  if (rows < 2 * lane.count) {
    const LaneRange work = lane.range(rows * a.heads);
    for (int64_t t = work.begin; t < work.end;) {
      const int64_t row = t / a.heads;
      const int64_t end = (row + 1) * a.heads < work.end ? (row + 1) * a.heads : work.end;
      attend_heads<Cell>(a, row, t - row * a.heads, end - row * a.heads, scores);
      t = end;
    }
    return;
  }
  // Later rows see more positions: round-robin dealing keeps the lanes even.
  for (int64_t row = lane.index; row < rows; row += lane.count)
    attend_heads<Cell>(a, row, 0, a.heads, scores);
}

inline void attention(const AttentionArgs& a, const Lane& lane) {
  const int64_t d = a.cache.head_dim;
  const bool empty = !a.causal && a.length == 0;
  if (d % 16 != 0 || d > kChunk || empty) return reference_ops().attention(a, lane);
  if (a.cache.dtype == DType::f32) return attention_of<CacheF32>(a, lane);
  if (a.cache.dtype == DType::f16) return attention_of<CacheF16>(a, lane);
  if (a.cache.dtype == DType::bf16) return attention_of<CacheBf16>(a, lane);
  if (a.cache.dtype == DType::q4_0) return attention_of<CacheQ4>(a, lane);
  attention_of<CacheQ8>(a, lane);
}

// Writes rows of keys and values into a cache of 16 bits. Other types use the reference body, which
// costs little more than the copy.
template <uint16_t (*kCode)(float)>
void kv_write_half(const KvWriteArgs& a, const Lane& lane) {
  const KvCache& c = a.cache;
  const LaneRange rows = lane.range(a.k.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const RowPosition row_position = place_of(a.row_positions, r, a.first);
    const KvCache own = c.sequence(row_position.sequence);
    const int64_t group = page_of(pages_of(a.row_positions, r), row_position.position / 16);
    const int64_t in_group = row_position.position % 16;
    for (int64_t head = 0; head < c.kv_heads; ++head) {
      const float* k = a.k.f32_row(r) + head * c.head_dim;
      const float* v = a.v.f32_row(r) + head * c.head_dim;
      auto* keys = reinterpret_cast<uint16_t*>(own.keys) +
                   (head * (own.capacity / 16) + group) * c.head_dim * 16 + in_group;
      auto* values = reinterpret_cast<uint16_t*>(own.values) +
                     (head * own.capacity + group * 16 + in_group) * c.head_dim;
      for (int64_t d = 0; d < c.head_dim; ++d) {
        keys[d * 16] = kCode(k[d]);
        values[d] = kCode(v[d]);
      }
    }
  }
}

inline void kv_write(const KvWriteArgs& a, const Lane& lane) {
  if (a.cache.dtype == DType::f16) return kv_write_half<f16_from_f32>(a, lane);
  if (a.cache.dtype == DType::bf16) return kv_write_half<bf16_from_f32>(a, lane);
  reference_ops().kv_write(a, lane);
}
