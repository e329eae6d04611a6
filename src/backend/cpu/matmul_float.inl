// Matmul over float-path weights (docs/numerics.md rule 2): per output one chain s = s + a*b over
// each chunk of 256 k, chunk sums added in ascending order, unfused. Tiles of R rows x G groups;
// tiling never changes a chain. Many rows: a chunk of two groups is decoded to f32 once and reused
// from the cache. Few rows: f32, f16 and bf16 are decoded in registers as they stream past; other
// types chunk by chunk.

constexpr int64_t kChunk = 256;

struct LoadF32 {
  static constexpr int64_t bytes = 4;
  LOOM_INLINE static Vf load(const std::byte* p) {
    return vf_load(reinterpret_cast<const float*>(p));
  }
};
struct LoadF16 {
  static constexpr int64_t bytes = 2;
  LOOM_INLINE static Vf load(const std::byte* p) {
    return vf_from_f16(reinterpret_cast<const uint16_t*>(p));
  }
};
struct LoadBf16 {
  static constexpr int64_t bytes = 2;
  LOOM_INLINE static Vf load(const std::byte* p) {
    return vf_from_bf16(reinterpret_cast<const uint16_t*>(p));
  }
};

// s[r][g] = chain over k in [0, n) of x[r][k] * codes[g][k].
template <class Load, int R, int G>
LOOM_INLINE void float_chunk(const float* const* x, const std::byte* const* codes, int64_t n,
                             V16 (&s)[R][G]) {
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
  }
  for (int64_t k = 0; k < n; ++k) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      LOOM_EACH(i) {
        const Vf w = Load::load(codes[g] + (k * 16 + i * kW) * Load::bytes);
        LOOM_UNROLL for (int r = 0; r < R; ++r) s[r][g].v[i] = s[r][g].v[i] + w * x[r][k];
      }
    }
  }
}

// Adds the sums of chunk `chunk` to the totals, which live in y between chunks, and finishes after
// the last.
template <int R, int G>
LOOM_INLINE void add_chunk(const MatmulArgs& m, const R16& w, int64_t row, int64_t group,
                           int64_t chunk, bool last, const V16 (&s)[R][G]) {
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      const int64_t column = (group + g) * 16;
      V16 total = s[r][g];
      if (chunk > 0)
        total = add16(load16_n(m.y.f32_row(row + r) + column, w.rows - column), s[r][g]);
      finish_tile(m, row + r, column, w.rows, total, last);
    }
  }
}

// One chunk of a tile whose decoded codes lie in `panel` [G][kChunk][16].
template <int R, int G>
void float_panel_tile(const MatmulArgs& m, const R16& w, int64_t row, int64_t group, int64_t chunk,
                      const float* panel) {
  const float* x[R];
  LOOM_UNROLL for (int r = 0; r < R; ++r) x[r] = m.x.f32_row(row + r) + chunk * kChunk;
  const std::byte* codes[G];
  LOOM_UNROLL for (int g = 0; g < G; ++g) codes[g] =
      reinterpret_cast<const std::byte*>(panel + g * kChunk * 16);
  const int64_t left = w.cols - chunk * kChunk;
  V16 s[R][G];
  float_chunk<LoadF32, R, G>(x, codes, left < kChunk ? left : kChunk, s);
  add_chunk<R, G>(m, w, row, group, chunk, left <= kChunk, s);
}

template <int G>
void float_panel_rows(const MatmulArgs& m, const R16& w, int64_t group, int64_t chunk,
                      const float* panel) {
  const int64_t rows = m.y.rows();
  int64_t row = 0;
  for (; row + kFloatTileRows <= rows; row += kFloatTileRows) {
    float_panel_tile<kFloatTileRows, G>(m, w, row, group, chunk, panel);
  }
  for (; row + 4 <= rows; row += 4) float_panel_tile<4, G>(m, w, row, group, chunk, panel);
  for (; row < rows; ++row) float_panel_tile<1, G>(m, w, row, group, chunk, panel);
}

template <class Load>
LOOM_INLINE void decode_wide(const std::byte* codes, int64_t n, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    LOOM_EACH(i)
    vf_store(out + k * 16 + i * kW, Load::load(codes + (k * 16 + i * kW) * Load::bytes));
  }
}

// Decodes k of one chunk of a group into [kChunk][16] floats.
inline void decode_chunk(const R16& w, const std::byte* data, int64_t group, int64_t chunk,
                         float* out) {
  const int64_t first = chunk * kChunk;
  const int64_t n = w.cols - first < kChunk ? w.cols - first : kChunk;
  const std::byte* codes = data + group * w.group_bytes + w.codes;
  if (w.dtype == DType::f32) return decode_wide<LoadF32>(codes + first * 64, n, out);
  if (w.dtype == DType::f16) return decode_wide<LoadF16>(codes + first * 32, n, out);
  if (w.dtype == DType::bf16) return decode_wide<LoadBf16>(codes + first * 32, n, out);
  float row[kChunk];
  for (int64_t lane = 0; lane < 16; ++lane) {
    const int64_t r = group * 16 + lane;
    if (r < w.rows) r16_decode(w, data, r, first, n, row);
    for (int64_t k = 0; k < n; ++k) out[k * 16 + lane] = r < w.rows ? row[k] : 0.0f;
  }
}

inline void float_many_rows(const MatmulArgs& m, const R16& w, LaneRange groups, float* panel) {
  const int64_t chunks = (w.cols + kChunk - 1) / kChunk;
  int64_t step = kFloatTileGroups;
  for (int64_t group = groups.begin; group < groups.end; group += step) {
    if (groups.end - group < step) step = 1;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t g = 0; g < step; ++g)
        decode_chunk(w, m.w.data, group + g, chunk, panel + g * kChunk * 16);
      if (step == kFloatTileGroups) {
        float_panel_rows<kFloatTileGroups>(m, w, group, chunk, panel);
      } else {
        float_panel_rows<1>(m, w, group, chunk, panel);
      }
    }
  }
}

// One row against G groups, decoding in registers.
template <class Load, int G>
void float_row(const MatmulArgs& m, const R16& w, int64_t row, int64_t group) {
  const std::byte* codes[G];
  LOOM_UNROLL for (int g = 0; g < G; ++g) codes[g] =
      m.w.data + (group + g) * w.group_bytes + w.codes;
  V16 total[G];
  for (int64_t k = 0; k < w.cols; k += kChunk) {
    const float* x[1] = {m.x.f32_row(row) + k};
    V16 s[1][G];
    float_chunk<Load, 1, G>(x, codes, w.cols - k < kChunk ? w.cols - k : kChunk, s);
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      total[g] = k == 0 ? s[0][g] : add16(total[g], s[0][g]);
      codes[g] += kChunk * 16 * Load::bytes;
    }
  }
  LOOM_UNROLL for (int g = 0; g < G; ++g)
      finish_tile(m, row, (group + g) * 16, w.rows, total[g], true);
}

template <class Load>
void float_few_rows(const MatmulArgs& m, const R16& w, LaneRange groups) {
  for (int64_t row = 0; row < m.y.rows(); ++row) {
    int64_t group = groups.begin;
    for (; group + kFloatRowGroups <= groups.end; group += kFloatRowGroups) {
      float_row<Load, kFloatRowGroups>(m, w, row, group);
    }
    for (; group < groups.end; ++group) float_row<Load, 1>(m, w, row, group);
  }
}

inline void matmul_float(const MatmulArgs& m, const R16& w, const Lane& lane) {
  if (dtype_info(w.dtype).compute == ComputeType::f64) return reference_ops().matmul(m, lane);
  const LaneRange groups = lane.range(w.groups, kFloatTileGroups);
  if (w.cols == 0) {
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      for (int64_t r = 0; r < m.y.rows(); ++r) finish_tile(m, r, g * 16, w.rows, set16(0.0f), true);
    }
    return;
  }
  if (m.y.rows() <= 3) {
    if (w.dtype == DType::f32) return float_few_rows<LoadF32>(m, w, groups);
    if (w.dtype == DType::f16) return float_few_rows<LoadF16>(m, w, groups);
    if (w.dtype == DType::bf16) return float_few_rows<LoadBf16>(m, w, groups);
  }
  float_many_rows(m, w, groups, reinterpret_cast<float*>(lane.scratch));
}
