// Matmul over float-path weights (docs/numerics.md rule 2). Each output has one chain s = fma(a, b,
// s) per chunk of 256 k; chunk sums are added in ascending order from +0. Tiles have R rows x G
// groups, and tiling never changes a chain.
//
// Many rows run chunk by chunk. The rows of one chunk are copied to the scratch at a constant
// stride, so a tile addresses all its rows from one register. Two groups of weights at a time
// become a panel of f32 in the cache, which all row tiles reuse. A single row tile reads f32, f16
// and bf16 in place instead. Few rows decode these types in registers as they stream past, several
// groups at a time.

constexpr int64_t kChunk = 256;
// Floats between two rows of the copy. A power of two would make the rows of a tile compete for few
// cache sets.
constexpr int64_t kCopyStride = kChunk + 16;
constexpr int64_t kPanelFloats = kFloatTileGroups * kChunk * 16;
// Rows of a copy that fit next to the panel, in whole tiles.
constexpr int64_t kCopyRows =
    (kMatmulScratch / 4 - kPanelFloats) / kCopyStride / kFloatTileRows * kFloatTileRows;
static_assert(kCopyRows >= kFloatTileRows);
constexpr int kStreamRows = 4;  // up to this count the weights stream, undecoded
// Groups that go through all chunks before the next groups, so that their totals in y stay in the
// cache.
constexpr int64_t kStripGroups = 32;

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

// ---- many rows ----

// The two layouts of a tile's rows: each row is a run of k in a copy, or sixteen rows are adjacent
// for each k, as in packed weights.
struct CopiedRows {
  static constexpr bool kLanes = false;
  static constexpr int64_t kNext = 1;
  static constexpr int kHeight = kFloatTileRows;
  LOOM_INLINE static int64_t at(int64_t row) { return row * kCopyStride; }
};
struct LaneRows {
  static constexpr bool kLanes = true;
  static constexpr int64_t kNext = 16;
  static constexpr int kHeight = kW == 16 ? 8 : kFloatTileRows;
  LOOM_INLINE static int64_t at(int64_t row) { return row; }
};

// One chunk of R rows against G groups of a panel.
struct PanelTile {
  const float* x;          // the first row
  const std::byte* panel;  // [G][k][16] weights
  int64_t panel_stride;    // bytes between groups
  int64_t n;               // k of this chunk
  float* y;
  int64_t y_stride;
  bool add;           // to the sums of earlier chunks in y
  const float* bias;  // added to complete sums; may be null
  // Prefetched as k goes up: a part of the next panel, `ahead_step` bytes per k.
  const std::byte* ahead;
  int64_t ahead_step;
};

template <class Load, class Form, int R, int G>
void panel_tile(const PanelTile& t) {
  V16 s[R][G];
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
  }
  const float* x = t.x;
  float* const y = t.y;
  const int64_t y_stride = t.y_stride;
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) __builtin_prefetch(y + r * y_stride + g * 16, 1);
  }
  const std::byte* panel = t.panel;
  const int64_t panel_stride = t.panel_stride;
  const std::byte* ahead = t.ahead;
  const int64_t ahead_step = t.ahead_step;
  for (const float* end = x + t.n * Form::kNext; x != end; x += Form::kNext) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    V16 w[G];
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      LOOM_EACH(i) w[g].v[i] = Load::load(panel + g * panel_stride + i * kW * Load::bytes);
    }
    panel += 16 * Load::bytes;
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      const float a = x[Form::at(r)];
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        LOOM_EACH(i) s[r][g].v[i] = vf_fma(w[g].v[i], a, s[r][g].v[i]);
      }
    }
  }
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = from_zero16(s[r][g]);
  }
  if (t.add) {
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] =
          add16(load16(y + r * y_stride + g * 16), s[r][g]);
    }
  }
  if (t.bias != nullptr) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      const V16 bias = load16(t.bias + g * 16);
      LOOM_UNROLL for (int r = 0; r < R; ++r) s[r][g] = add16(s[r][g], bias);
    }
  }
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) store16(y + r * y_stride + g * 16, s[r][g]);
  }
}

using PanelTileFn = void (*)(const PanelTile&);
// One function per height, so that no remainder runs row by row. Not std::array: its members could
// remain in the binary as shared symbols (base/inline.hpp).
struct PanelTiles {
  PanelTileFn of[2][kFloatTileRows];  // [groups - 1][rows - 1]
};
template <class Load, class Form, int... R>
constexpr PanelTiles panel_tiles(std::integer_sequence<int, R...>) {
  return {{{panel_tile<Load, Form, R + 1, 1>...},
           {panel_tile<Load, Form, R + 1, kFloatTileGroups>...}}};
}
template <class Load, class Form = CopiedRows>
constexpr PanelTiles kPanelTiles =
    panel_tiles<Load, Form>(std::make_integer_sequence<int, Form::kHeight>{});

// Adds bias (unless a tile has added it) and activation to complete sums.
__attribute__((noinline)) void finish_rows(const MatmulArgs& m, int64_t row, int64_t rows,
                                           int64_t column, int64_t columns, bool biased = false) {
  biased = biased || m.bias.empty();
  if (biased && m.activation == Activation::linear) return;
  for (int64_t c = column; c < column + columns; c += 16) {
    const int64_t left = column + columns - c;
    const V16 bias = biased ? set16(0.0f) : load16_n(m.bias.f32() + c, left);
    for (int64_t r = row; r < row + rows; ++r) {
      float* const y = m.y.f32_row(r) + c;
      V16 total = load16_n(y, left);
      if (!biased) total = add16(total, bias);
      if (m.activation != Activation::linear) activate16(m.activation, total);
      store16_n(y, total, left);
    }
  }
}

// Runs a full tile in scratch for a last group that the width of y cuts.
__attribute__((noinline)) void ragged_tile(PanelTileFn fn, PanelTile t, int64_t rows,
                                           int64_t columns) {
  constexpr int64_t kStride = kFloatTileGroups * 16;
  float full[kFloatTileRows * kStride];
  float* const y = t.y;
  for (int64_t r = 0; r < rows && t.add; ++r) {
    for (int64_t c = 0; c < kStride; ++c)
      full[r * kStride + c] = c < columns ? y[r * t.y_stride + c] : 0.0f;
  }
  const int64_t y_stride = t.y_stride;
  t.y = full;
  t.y_stride = kStride;
  fn(t);
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(y + r * y_stride, full + r * kStride, static_cast<size_t>(columns) * 4);
}

template <class Load>
LOOM_INLINE void decode_wide(const std::byte* codes, int64_t n, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    LOOM_EACH(i)
    vf_store(out + k * 16 + i * kW, Load::load(codes + (k * 16 + i * kW) * Load::bytes));
  }
}

// Decodes n k of any dtype, row by row.
__attribute__((noinline)) void decode_rows(const R16& w, const std::byte* data, int64_t group,
                                           int64_t first, int64_t n, float* out) {
  float row[kChunk];
  for (int64_t lane = 0; lane < 16; ++lane) {
    const int64_t r = group * 16 + lane;
    if (r < w.rows) r16_decode(w, data, r, first, n, row);
    for (int64_t k = 0; k < n; ++k) out[k * 16 + lane] = r < w.rows ? row[k] : 0.0f;
  }
}

// Decodes n k from `first` of a group into [n][16] floats.
inline void decode_chunk(const R16& w, const std::byte* data, int64_t group, int64_t first,
                         int64_t n, float* out) {
  const std::byte* codes = data + group * w.group_bytes + w.codes;
  if (w.dtype == DType::f16) return decode_wide<LoadF16>(codes + first * 32, n, out);
  if (w.dtype == DType::bf16) return decode_wide<LoadBf16>(codes + first * 32, n, out);
  if (w.dtype == DType::f32) return decode_wide<LoadF32>(codes + first * 64, n, out);
  if (w.bits <= 8) {
    const bool direct = dtype_info(w.dtype).levels == Levels::direct;
    const auto decode = direct ? decode_small<true> : decode_small<false>;
    return decode(w, data, group, first, n, out);
  }
  decode_rows(w, data, group, first, n, out);
}

// All row tiles of one block of rows against a panel of `count` groups.
inline void panel_rows(const MatmulArgs& m, const R16& w, LaneRange rows, int64_t group,
                       int64_t count, const PanelTiles& tiles_of, PanelTile t, bool last) {
  const int64_t column = group * 16;
  const int64_t columns = w.rows - column < count * 16 ? w.rows - column : count * 16;
  // Tiles of equal height: a last tile of one row would wait on the latency of its additions.
  const int64_t tiles = (rows.end - rows.begin + kFloatTileRows - 1) / kFloatTileRows;
  for (int64_t i = 0; i < tiles; ++i) {
    const LaneRange part =
        lane_range(rows.end - rows.begin, 1, static_cast<int>(i), static_cast<int>(tiles));
    const int64_t height = part.end - part.begin;
    const PanelTileFn fn = tiles_of.of[count > 1][height - 1];
    PanelTile tile = t;
    // Each of the first tiles prefetches one group of the next panel; later tiles prefetch nothing.
    if (i < count && t.ahead != nullptr) {
      tile.ahead += i * w.group_bytes;
    } else {
      tile.ahead = m.w.data;
      tile.ahead_step = 0;
    }
    tile.x += part.begin * kCopyStride;
    tile.y = m.y.f32_row(rows.begin + part.begin) + column;
    const bool whole = columns == count * 16;
    if (last && whole && !m.bias.empty()) tile.bias = m.bias.f32() + column;
    if (whole) {
      fn(tile);
    } else {
      ragged_tile(fn, tile, height, columns);
    }
    if (last) finish_rows(m, rows.begin + part.begin, height, column, columns, whole);
  }
}

// Copies the x of one chunk of a block of rows into the scratch.
inline void copy_chunk(const MatmulArgs& m, const R16& w, LaneRange rows, int64_t first,
                       float* scratch) {
  float* const copy = scratch + kPanelFloats;
  const int64_t n = w.cols - first < kChunk ? w.cols - first : kChunk;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    // Not memcpy: GCC turns it into a string instruction, which is slow to start.
    const float* from = m.x.f32_row(r) + first;
    float* to = copy + (r - rows.begin) * kCopyStride;
    for (int64_t k = 0; k < n; k += 16) store16_n(to + k, load16_n(from + k, n - k), n - k);
  }
}

// One chunk of a block of rows that has been copied.
inline void float_chunk(const MatmulArgs& m, const R16& w, LaneRange groups, LaneRange rows,
                        int64_t first, float* scratch) {
  float* const panel = scratch;
  const float* const copy = scratch + kPanelFloats;
  const int64_t n = w.cols - first < kChunk ? w.cols - first : kChunk;
  // Decoding a panel pays if more than one tile reads it.
  const PanelTiles* tiles = &kPanelTiles<LoadF32>;
  bool in_place = w.dtype == DType::f32;
  if (rows.end - rows.begin <= kFloatTileRows && w.dtype == DType::f16) {
    tiles = &kPanelTiles<LoadF16>;
    in_place = true;
  } else if (rows.end - rows.begin <= kFloatTileRows && w.dtype == DType::bf16) {
    tiles = &kPanelTiles<LoadBf16>;
    in_place = true;
  }
  const int64_t k_bytes = dtype_info(w.dtype).bits * 2;  // of one k of a wide group
  PanelTile t{};
  t.x = copy;
  t.n = n;
  t.y_stride = m.y.row_stride;
  t.add = first > 0;
  t.ahead_step = k_bytes;
  int64_t step = kFloatTileGroups;
  for (int64_t group = groups.begin; group < groups.end; group += step) {
    if (groups.end - group < step) step = 1;
    const std::byte* codes = m.w.data + group * w.group_bytes + w.codes + first * k_bytes;
    if (in_place) {
      t.panel = codes;
      t.panel_stride = w.group_bytes;
    } else {
      for (int64_t g = 0; g < step; ++g)
        decode_chunk(w, m.w.data, group + g, first, n, panel + g * kChunk * 16);
      t.panel = reinterpret_cast<const std::byte*>(panel);
      t.panel_stride = kChunk * 16 * 4;
    }
    const bool more = w.wide && group + 2 * step <= groups.end;
    t.ahead = more ? codes + step * w.group_bytes : nullptr;
    panel_rows(m, w, rows, group, step, *tiles, t, first + n == w.cols);
  }
}

// Cuts rows into blocks of about equal size; a chunk of each fits the copy.
template <class Body>
LOOM_INLINE void each_block(LaneRange rows, Body body) {
  const int64_t count = rows.end - rows.begin;
  const int64_t blocks = (count + kCopyRows - 1) / kCopyRows;
  for (int64_t b = 0; b < blocks; ++b) {
    const LaneRange part =
        lane_range(count, kFloatTileRows, static_cast<int>(b), static_cast<int>(blocks));
    body(LaneRange{rows.begin + part.begin, rows.begin + part.end});
  }
}

inline void float_many_rows(const MatmulArgs& m, const R16& w, const TileShare& share,
                            float* scratch) {
  each_block(share.rows, [&](LaneRange block) {
    for (int64_t group = share.groups.begin; group < share.groups.end; group += kStripGroups) {
      const int64_t left = share.groups.end - group;
      const int64_t end = group + (left < kStripGroups ? left : kStripGroups);
      for (int64_t first = 0; first < w.cols; first += kChunk) {
        copy_chunk(m, w, block, first, scratch);
        float_chunk(m, w, {group, end}, block, first, scratch);
      }
    }
  });
}

// ---- few rows ----

// s[r][g] = one chain over n k of x[r][k] * the codes of group g.
template <class Load, int R, int G>
LOOM_INLINE void stream_chunk(const float* const* x, const std::byte* const* codes, int64_t n,
                              V16 (&s)[R][G]) {
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
  }
  for (int64_t k = 0; k < n; ++k) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      LOOM_EACH(i) {
        const Vf c = Load::load(codes[g] + (k * 16 + i * kW) * Load::bytes);
        LOOM_UNROLL for (int r = 0; r < R; ++r) s[r][g].v[i] = vf_fma(c, x[r][k], s[r][g].v[i]);
      }
    }
  }
}

// R rows against G groups, decoded in registers. Out of line: inlined together, the tiles would
// share registers badly.
template <class Load, int R, int G>
__attribute__((noinline)) void stream_tile(const MatmulArgs& m, const R16& w, int64_t group) {
  const float* x[R];
  LOOM_UNROLL for (int r = 0; r < R; ++r) x[r] = m.x.f32_row(r);
  const std::byte* codes[G];
  LOOM_UNROLL for (int g = 0; g < G; ++g) codes[g] =
      m.w.data + (group + g) * w.group_bytes + w.codes;
  V16 total[R][G];
  for (int64_t left = w.cols; left > 0; left -= kChunk) {
    V16 s[R][G];
    stream_chunk<Load, R, G>(x, codes, left < kChunk ? left : kChunk, s);
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) total[r][g] =
          left == w.cols ? from_zero16(s[r][g]) : add16(total[r][g], s[r][g]);
      x[r] += kChunk;
    }
    LOOM_UNROLL for (int g = 0; g < G; ++g) codes[g] += kChunk * 16 * Load::bytes;
  }
  const int64_t column = group * 16;
  const int64_t columns = w.rows - column < G * 16 ? w.rows - column : G * 16;
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    float* const y = m.y.f32_row(r) + column;
    LOOM_UNROLL for (int g = 0; g + 1 < G; ++g) store16(y + g * 16, total[r][g]);
    store16_n(y + (G - 1) * 16, total[r][G - 1], columns - (G - 1) * 16);
  }
  finish_rows(m, 0, R, column, columns);
}

template <class Load, int R, int G>
LOOM_INLINE void stream_groups(const MatmulArgs& m, const R16& w, LaneRange groups) {
  int64_t group = groups.begin;
  for (; group + G <= groups.end; group += G) stream_tile<Load, R, G>(m, w, group);
  if constexpr (G > 1) stream_groups<Load, R, G / 2>(m, w, {group, groups.end});
}

template <class Load>
void float_few_rows(const MatmulArgs& m, const R16& w, LaneRange groups) {
  constexpr int kPair = kFloatRowGroups / 2;
  constexpr int kMore = kW == 16 ? kPair : 1;
  const int64_t rows = m.y.rows();
  if (rows == 1) return stream_groups<Load, 1, kFloatRowGroups>(m, w, groups);
  if (rows == 2) return stream_groups<Load, 2, kPair>(m, w, groups);
  if (rows == 3) return stream_groups<Load, 3, kMore>(m, w, groups);
  if (rows == kStreamRows) return stream_groups<Load, kStreamRows, kMore>(m, w, groups);
}

// Whether the weights stream past, undecoded.
inline bool streams(const MatmulArgs& m, const R16& w) {
  const bool known = w.dtype == DType::f32 || w.dtype == DType::f16 || w.dtype == DType::bf16;
  return known && m.y.rows() <= kStreamRows;
}
inline void stream(const MatmulArgs& m, const R16& w, LaneRange groups) {
  if (w.dtype == DType::f32) return float_few_rows<LoadF32>(m, w, groups);
  if (w.dtype == DType::f16) return float_few_rows<LoadF16>(m, w, groups);
  float_few_rows<LoadBf16>(m, w, groups);
}

// ---- sharing ----

// Decoding a weight for a panel takes about as long as two rows use it. f32 is read in place.
inline TileShare float_share(const R16& w, int64_t rows, const Lane& lane) {
  const int64_t panel_rows = w.dtype == DType::f32 ? 0 : 2;
  return tile_share(rows, kFloatTileRows, w.groups, kFloatTileGroups, panel_rows, lane);
}

inline void matmul_float(const MatmulArgs& m, const R16& w, const Lane& lane) {
  if (dtype_info(w.dtype).compute == ComputeType::f64) return reference_ops().matmul(m, lane);
  const LaneRange groups = lane.range(w.groups);
  if (w.cols == 0) {
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      for (int64_t r = 0; r < m.y.rows(); ++r) finish_tile(m, r, g * 16, w.rows, set16(0.0f), true);
    }
    return;
  }
  if (streams(m, w)) return stream(m, w, groups);
  float_many_rows(m, w, float_share(w, m.y.rows(), lane), reinterpret_cast<float*>(lane.scratch));
}

// Rows and ranges of groups that the caller chose, for weights that compute in f32.
template <int N>
LOOM_INLINE void matmul_float_ranges(const MatmulArgs& m, const R16& w, LaneRange rows,
                                     const LaneRange (&ranges)[N], const Lane& lane) {
  if (streams(m, w)) {
    for (const LaneRange& groups : ranges) stream(m, w, groups);
    return;
  }
  float* const scratch = reinterpret_cast<float*>(lane.scratch);
  each_block(rows, [&](LaneRange block) {
    for (int64_t first = 0; first < w.cols; first += kChunk) {
      copy_chunk(m, w, block, first, scratch);
      for (const LaneRange& groups : ranges) float_chunk(m, w, groups, block, first, scratch);
    }
  });
}
