// Matmul over integer-path weights and q8 activations (docs/numerics.md rule 3):
//   acc = acc + float(sum of level * code over a block) * (step * scale), blocks ascending, one
//   chain per output.
// Codes are read as unsigned bytes u = level + bias; the bias leaves again exactly: -bias * (sum of
// activations). Tiles of R rows x G groups of 16 outputs; tiling never changes a chain. Many rows:
// codes of two groups are unpacked to bytes once per segment of k and reused from the L1 cache.

// Blocks of k whose bytes for two groups fill half of the L1 cache, and from how many rows
// unpacking them pays.
constexpr int64_t kPanelBlocks = 24;
constexpr int64_t kPanelMinRows = 8;

// How the codes and scales of a dtype are read. One instantiation per storage form.
template <int kBits, Levels kLevels, ScaleRule kScale>
struct Q8Format {
  static constexpr int bits = kBits;
  static constexpr Levels levels = kLevels;
  static constexpr ScaleRule scale = kScale;
  static constexpr bool affine = kScale == ScaleRule::affine;
  static constexpr bool halves = kScale == ScaleRule::e4m3;  // a scale per 16 values
  static constexpr bool row_scaled = kScale == ScaleRule::row || kScale == ScaleRule::affine;
};

// Levels of the 4-bit code books plus their bias, so that bytes are unsigned.
constexpr uint8_t kE2m1Bytes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr uint8_t kE3m0Bytes[16] = {64, 65, 66, 68, 72, 80, 96, 128, 64, 63, 62, 60, 56, 48, 32, 0};

template <class Format>
constexpr int32_t level_bias(int code_bias) {
  if (Format::levels == Levels::e2m1) return 12;
  if (Format::levels == Levels::e3m0) return 64;
  if (Format::levels == Levels::twice) return 1;
  return code_bias;
}

// Bytes u of quad `quad` (four k of sixteen rows) of a block, register i.
template <class Format>
LOOM_INLINE Vi unpack_quad(const std::byte* block, int quad, int i) {
  constexpr int kB = Format::bits;
  Vi raw = vi_load(block + (quad % kB) * 64 + i * 4 * kW);
  if constexpr (kB == 8) {
    return raw;
  } else {
    constexpr uint32_t kMask = ((1u << kB) - 1) * 0x01010101u;
    Vi codes = (Vi)(((Vu)raw >> (kB * (quad / kB))) & kMask);
    if constexpr (Format::levels == Levels::twice) codes = codes << 1;
    if constexpr (Format::levels == Levels::e2m1) codes = lookup(codes, kE2m1Bytes);
    if constexpr (Format::levels == Levels::e3m0) codes = lookup(codes, kE3m0Bytes);
    return codes;
  }
}

// Steps of a block (half 0 or 1 for formats with a scale per 16).
template <class Format>
LOOM_INLINE V16 load_step(const R16& g, const std::byte* group, int64_t block, int half) {
  V16 r;
  if constexpr (Format::row_scaled) {
    (void)block;
    (void)half;
    return load16(reinterpret_cast<const float*>(group + g.row_scales));
  } else if constexpr (Format::scale == ScaleRule::f16) {
    const auto* p = reinterpret_cast<const uint16_t*>(group + g.block_scales + block * 32);
    LOOM_EACH(i) r.v[i] = vf_from_f16(p + i * kW);
    return r;
  } else {
    float steps[16];
    for (int lane = 0; lane < 16; ++lane) {
      steps[lane] = decode_step(Format::scale, g, group, block, half, lane);
    }
    return load16(steps);
  }
}

// What a tile of rows needs of the quantised activations.
struct Q8Tile {
  const int8_t* codes;  // of the first row
  const float* scales;
  const int32_t* sums;
  const int32_t* half_sums;
  int64_t code_stride, block_stride;
};

// acc[r][g] continues over blocks [first, first + count). `panel` (or null) holds unpacked bytes of
// those blocks.
template <class Format, int R, int G, bool kPanel>
LOOM_INLINE void q8_blocks(const R16& w, const std::byte* const* groups, const std::byte* panel,
                           int32_t bias, const Q8Tile& q, int64_t first, int64_t count,
                           V16 (&acc)[R][G]) {
  using Codes = std::conditional_t<kPanel, Q8Format<8, Levels::direct, Format::scale>, Format>;
  constexpr int kHalves = Format::halves ? 2 : 1;
  constexpr int kQuads = 8 / kHalves;
  const int64_t code_bytes = kPanel ? 512 : w.block_code_bytes();
  I16 zero[G];
  if constexpr (Format::affine) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      LOOM_EACH(i) zero[g].v[i] = -(vi_load(groups[g] + w.zeros + i * 4 * kW) + bias);
    }
  }
  V16 row_step[G];
  if constexpr (Format::row_scaled) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) row_step[g] = load_step<Format>(w, groups[g], 0, 0);
  }
  // -bias * sum of each block, ready to be broadcast from memory.
  constexpr bool kPrepared = kPanel && !Format::affine && !Format::halves;
  int32_t corrections[kPrepared ? R : 1][kPanelBlocks];
  if constexpr (kPrepared) {
    for (int r = 0; r < R; ++r) {
      for (int64_t b = 0; b < count; ++b)
        corrections[r][b] = -bias * q.sums[r * q.block_stride + first + b];
    }
  }
  for (int64_t b = first; b < first + count; ++b) {
    LOOM_UNROLL for (int half = 0; half < kHalves; ++half) {
      I16 s[R][G];
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        int32_t sum = q.sums[r * q.block_stride + b];
        if constexpr (kHalves == 2) {
          const int32_t lower = q.half_sums[r * q.block_stride + b];
          sum = half == 0 ? lower : sum - lower;
        }
        LOOM_UNROLL for (int g = 0; g < G; ++g) {
          LOOM_EACH(i) {
            if constexpr (Format::affine) {
              s[r][g].v[i] = zero[g].v[i] * sum;
            } else if constexpr (kPrepared) {
              s[r][g].v[i] = vi_set(corrections[r][b - first]);
            } else {
              s[r][g].v[i] = vi_set(-bias * sum);
            }
          }
        }
      }
      LOOM_UNROLL for (int j = 0; j < kQuads; ++j) {
        const int quad = half * kQuads + j;
        Vi a[R];
        LOOM_UNROLL for (int r = 0; r < R; ++r) {
          int32_t four;
          std::memcpy(&four, q.codes + r * q.code_stride + b * 32 + quad * 4, 4);
          a[r] = vi_set(four);
        }
        LOOM_UNROLL for (int g = 0; g < G; ++g) {
          const std::byte* block =
              kPanel ? panel + (static_cast<int64_t>(g) * count + (b - first)) * code_bytes
                     : groups[g] + w.codes + b * code_bytes;
          LOOM_EACH(i) {
            const Vi codes = unpack_quad<Codes>(block, quad, i);
            LOOM_UNROLL for (int r = 0; r < R; ++r) s[r][g].v[i] = dot4(s[r][g].v[i], codes, a[r]);
          }
        }
      }
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        const V16 step =
            Format::row_scaled ? row_step[g] : load_step<Format>(w, groups[g], b, half);
        LOOM_UNROLL for (int r = 0; r < R; ++r) {
          const float scale = q.scales[r * q.block_stride + b];
          const V16 sum = to_float(s[r][g]);
          LOOM_EACH(i) acc[r][g].v[i] = acc[r][g].v[i] + sum.v[i] * (step.v[i] * scale);
        }
      }
    }
  }
}

// One tile: rows [row, row + R) and G groups from `group`, blocks [first, first + count) of k.
template <class Format, int R, int G, bool kPanel>
void q8_tile(const MatmulArgs& m, const R16& w, int32_t bias, int64_t row, int64_t group,
             const std::byte* panel, int64_t first, int64_t count) {
  const std::byte* groups[G];
  LOOM_UNROLL for (int g = 0; g < G; ++g) groups[g] = m.w.data + (group + g) * w.group_bytes;
  const int64_t stride = m.q8.padded_cols();
  const Q8Tile q{m.q8.codes + row * stride,
                 m.q8.scales + row * m.q8.blocks,
                 m.q8.sums + row * m.q8.blocks,
                 m.q8.half_sums + row * m.q8.blocks,
                 stride,
                 m.q8.blocks};
  V16 acc[R][G];
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      const int64_t column = (group + g) * 16;
      acc[r][g] =
          first == 0 ? set16(0.0f) : load16_n(m.y.f32_row(row + r) + column, w.rows - column);
    }
  }
  q8_blocks<Format, R, G, kPanel>(w, groups, panel, bias, q, first, count, acc);
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      finish_tile(m, row + r, (group + g) * 16, w.rows, acc[r][g], first + count == w.blocks);
    }
  }
}

template <class Format, int G, bool kPanel>
void q8_rows(const MatmulArgs& m, const R16& w, int32_t bias, int64_t group, const std::byte* panel,
             int64_t first, int64_t count) {
  const int64_t rows = m.y.rows();
  int64_t row = 0;
  for (; row + kQ8TileRows <= rows; row += kQ8TileRows) {
    q8_tile<Format, kQ8TileRows, G, kPanel>(m, w, bias, row, group, panel, first, count);
  }
  for (; row + 2 <= rows; row += 2)
    q8_tile<Format, 2, G, kPanel>(m, w, bias, row, group, panel, first, count);
  if (row < rows) q8_tile<Format, 1, G, kPanel>(m, w, bias, row, group, panel, first, count);
}

// Bytes of blocks [first, first + count) of G groups, in the order q8_blocks<kPanel> reads them.
template <class Format>
void unpack_panel(const R16& w, const std::byte* data, int64_t groups, int64_t first, int64_t count,
                  std::byte* panel) {
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t b = 0; b < count; ++b) {
      const std::byte* block =
          data + g * w.group_bytes + w.codes + (first + b) * w.block_code_bytes();
      std::byte* out = panel + (g * count + b) * 512;
      for (int quad = 0; quad < 8; ++quad) {
        LOOM_EACH(i) {
          const Vi codes = unpack_quad<Format>(block, quad, i);
          std::memcpy(out + quad * 64 + i * 4 * kW, &codes, sizeof(codes));
        }
      }
    }
  }
}

template <class Format>
void q8_many_rows(const MatmulArgs& m, const R16& w, int32_t bias, LaneRange groups,
                  std::byte* scratch) {
  for (int64_t group = groups.begin; group < groups.end; group += 2) {
    const int64_t pair = groups.end - group >= 2 ? 2 : 1;
    for (int64_t first = 0; first < w.blocks; first += kPanelBlocks) {
      const int64_t count = w.blocks - first < kPanelBlocks ? w.blocks - first : kPanelBlocks;
      unpack_panel<Format>(w, m.w.data + group * w.group_bytes, pair, first, count, scratch);
      if (pair == 2) {
        q8_rows<Format, 2, true>(m, w, bias, group, scratch, first, count);
      } else {
        q8_rows<Format, 1, true>(m, w, bias, group, scratch, first, count);
      }
    }
  }
}

template <class Format>
void q8_few_rows(const MatmulArgs& m, const R16& w, int32_t bias, LaneRange groups) {
  int64_t group = groups.begin;
  for (; group + 2 <= groups.end; group += 2)
    q8_rows<Format, 2, false>(m, w, bias, group, nullptr, 0, w.blocks);
  if (group < groups.end) q8_rows<Format, 1, false>(m, w, bias, group, nullptr, 0, w.blocks);
}

template <class Format>
void q8_matmul(const MatmulArgs& m, const R16& w, const Lane& lane) {
  const int32_t bias = level_bias<Format>(dtype_info(w.dtype).code_bias);
  const LaneRange groups = lane.range(w.groups, 2);
  if (w.blocks == 0) {  // no k at all: the sums are empty
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      for (int64_t r = 0; r < m.y.rows(); ++r) finish_tile(m, r, g * 16, w.rows, set16(0.0f), true);
    }
  } else if (m.y.rows() >= kPanelMinRows) {
    q8_many_rows<Format>(m, w, bias, groups, lane.scratch);
  } else {
    q8_few_rows<Format>(m, w, bias, groups);
  }
}

// The storage form of a dtype, from its table row.
inline void matmul_q8(const MatmulArgs& m, const R16& w, const Lane& lane) {
  using enum Levels;
  const DTypeInfo& info = dtype_info(w.dtype);
  const auto is = [&](int bits, Levels levels, ScaleRule scale) {
    const bool row = info.scale == ScaleRule::absmean || info.scale == ScaleRule::meanabs;
    return info.bits == bits && info.levels == levels &&
           (row ? ScaleRule::row : info.scale) == scale;
  };
#define LOOM_Q8_FORM(bits, levels, scale) \
  if (is(bits, levels, ScaleRule::scale)) \
  return q8_matmul<Q8Format<bits, levels, ScaleRule::scale>>(m, w, lane)
  LOOM_Q8_FORM(4, direct, f16);
  LOOM_Q8_FORM(8, direct, f16);
  LOOM_Q8_FORM(8, direct, row);
  LOOM_Q8_FORM(8, direct, affine);
  LOOM_Q8_FORM(4, direct, row);
  LOOM_Q8_FORM(4, direct, affine);
  LOOM_Q8_FORM(2, direct, row);
  LOOM_Q8_FORM(2, direct, affine);
  LOOM_Q8_FORM(1, twice, row);
  LOOM_Q8_FORM(4, e2m1, row);
  LOOM_Q8_FORM(4, e3m0, row);
  LOOM_Q8_FORM(4, e2m1, e8m0);
  LOOM_Q8_FORM(4, e2m1, e4m3);
#undef LOOM_Q8_FORM
  reference_ops().matmul(m, lane);
}
