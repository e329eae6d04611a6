// Matmul over integer-path weights and q8 activations (docs/numerics.md rule 3):
//   acc = acc + float(sum of level * code over a block) * (step * scale), blocks ascending, one
//   chain per output; types of super-blocks have one term per super-block (q8_super.inl).
// Codes are read as unsigned bytes u = level + bias - kDotOffset (dot.inl). The bias is removed
// exactly: -bias * (sum of activations). Tiles have R rows x G groups of 16 outputs; tiling never
// changes a chain. With many rows, codes of two groups are unpacked to bytes once per segment of k
// and reused from the L1 cache.

// Blocks of k whose bytes for two groups fill half of the L1 cache, and the number of rows from
// which unpacking pays.
constexpr int64_t kPanelBlocks = 24;
constexpr int64_t kPanelMinRows = 12;
// Unpacking a panel takes about as long as this many rows use it.
constexpr int64_t kUnpackRows = 2;
// Prefetch distance of weights for few rows, in bytes.
constexpr int64_t kAhead = 4096;

// How the codes and scales of a dtype are read. One instantiation per storage form.
template <int kBits, Levels kLevels, ScaleRule kScale, ZeroRule kZero, int kBlock>
struct Q8Format {
  static constexpr int bits = kBits;
  static constexpr int low_bits = kBits == 3 ? 2 : kBits == 5 || kBits == 6 ? 4 : kBits;
  static constexpr Levels levels = kLevels;
  static constexpr ScaleRule scale = kScale;
  static constexpr ZeroRule zero = kZero;
  static constexpr bool halves = kBlock == 16;  // a scale per 16 values
  static constexpr bool row_scaled = kBlock == 0;
  static constexpr bool shifted = kZero == ZeroRule::f16 || kZero == ZeroRule::small;
  // Has zero points: the sum of each output starts from a different number.
  static constexpr bool points = kZero == ZeroRule::row || kZero == ZeroRule::code;
  static constexpr bool super = kScale == ScaleRule::u4 || kScale == ScaleRule::u6 ||
                                kScale == ScaleRule::i6 || kScale == ScaleRule::i8;
  // The location of the scales of a block of 32 with f16 scales.
  LOOM_INLINE static const std::byte* record(const R16& g, const std::byte* group, int64_t block) {
    constexpr int64_t kRecord = kZero == ZeroRule::f16 ? 64 : kZero == ZeroRule::code ? 48 : 32;
    return group + g.block_scales + block * 32 / kBlock * kRecord;
  }
};

// Levels of the 4-bit code books plus their bias, so that bytes are unsigned.
constexpr uint8_t kE2m1Bytes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
constexpr uint8_t kE3m0Bytes[16] = {64, 65, 66, 68, 72, 80, 96, 128, 64, 63, 62, 60, 56, 48, 32, 0};

// The largest byte u.
template <class Format>
constexpr int kMaxByte = Format::levels == Levels::e2m1    ? 24
                         : Format::levels == Levels::e3m0  ? 128
                         : Format::levels == Levels::twice ? 2
                                                           : (1 << Format::bits) - 1;

// The amount to subtract from a byte, as it enters a BlockSum, to get the level.
template <class Format>
constexpr int32_t level_bias(int code_bias) {
  int32_t bias = code_bias;
  if (Format::levels == Levels::e2m1) bias = 12;
  if (Format::levels == Levels::e3m0) bias = 64;
  if (Format::levels == Levels::twice) bias = 1;
  return bias - kDotOffset<kMaxByte<Format>>;
}

// Bits of the codes of quad `quad` (four k of sixteen rows) of a block, register i, from a plane of
// kB bits. They are shifted up by kUp.
template <int kB, int kUp>
LOOM_INLINE Vi plane_quad(const std::byte* plane, int quad, int i) {
  const Vu words = (Vu)vi_load(plane + (quad % kB) * 64 + i * 4 * kW);
  constexpr uint32_t kMask = (((1u << kB) - 1) << kUp) * 0x01010101u;
  const int right = kB * (quad / kB) - kUp;
  return (Vi)((right >= 0 ? words >> right : words << -right) & kMask);
}

// Bytes u of a quad in the form that a BlockSum reads.
template <class Format>
LOOM_INLINE Vi unpack_quad(const std::byte* block, int quad, int i) {
  constexpr int kB = Format::bits, kLow = Format::low_bits;
  if constexpr (kB == 8) {
    return dot_bytes<kMaxByte<Format>>(vi_load(block + quad * 64 + i * 4 * kW));
  } else {
    Vi codes = plane_quad<kLow, 0>(block, quad, i);
    if constexpr (kLow < kB) codes |= plane_quad<kB - kLow, kLow>(block + kLow * 64, quad, i);
    if constexpr (Format::levels == Levels::twice) codes = codes << 1;
    if constexpr (Format::levels == Levels::e2m1) codes = lookup(codes, kE2m1Bytes);
    if constexpr (Format::levels == Levels::e3m0) codes = lookup(codes, kE3m0Bytes);
    return dot_bytes<kMaxByte<Format>>(codes);
  }
}

LOOM_INLINE V16 load_f16(const std::byte* from) {
  const auto* p = reinterpret_cast<const uint16_t*>(from);
  V16 r;
  LOOM_EACH(i) r.v[i] = vf_from_f16(p + i * kW);
  return r;
}

// Steps of a block (half 0 or 1 for formats with a scale per 16).
template <class Format>
LOOM_INLINE V16 load_step(const R16& g, const std::byte* group, int64_t block, int half) {
  if constexpr (Format::row_scaled) {
    (void)block;
    (void)half;
    return load16(reinterpret_cast<const float*>(group + g.row_scales));
  } else if constexpr (Format::scale == ScaleRule::f16) {
    return load_f16(Format::record(g, group, block));
  } else {
    float steps[16];
    for (int lane = 0; lane < 16; ++lane) {
      steps[lane] = decode_step(Format::scale, g, group, block, half, lane);
    }
    return load16(steps);
  }
}

// The quantized activations of a tile of rows.
struct Q8Tile {
  const int8_t* codes;  // of the first row
  const float* scales;
  const int32_t* sums;
  const int32_t* half_sums;
  int64_t code_stride, block_stride;
};

// negatives_of() of a block, or of one half of it.
template <class Format>
LOOM_INLINE int32_t negatives(const Q8Tile& q, int r, int64_t block, int half) {
  constexpr int kCount = Format::halves ? 16 : 32;
  if constexpr (!kDotNegatives<kMaxByte<Format>>) return 0;
  return negatives_of(q.codes + r * q.code_stride + block * 32 + half * kCount, kCount);
}

// The start value of the sum over a block, per row: -bias * the sum of the activations. With it the
// result is the sum of levels.
template <class Format, int R>
struct BlockStarts {
  // Prepared for the blocks of a panel, for a broadcast from memory.
  static constexpr bool kPrepared = !Format::points && !Format::halves;
  int32_t prepared[kPrepared ? R : 1][kPanelBlocks];

  LOOM_INLINE void prepare(const Q8Tile& q, int32_t bias, int64_t first, int64_t count) {
    if constexpr (kPrepared) {
      for (int r = 0; r < R; ++r) {
        for (int64_t b = 0; b < count; ++b)
          prepared[r][b] = -bias * q.sums[r * q.block_stride + first + b] +
                           negatives<Format>(q, r, first + b, 0);
      }
    }
  }
};

// The sum of the activations of a block, or of one half of it.
template <class Format>
LOOM_INLINE int32_t sum_of(const Q8Tile& q, int r, int64_t block, int half) {
  const int32_t sum = q.sums[r * q.block_stride + block];
  if constexpr (!Format::halves) return sum;
  const int32_t lower = q.half_sums[r * q.block_stride + block];
  return half == 0 ? lower : sum - lower;
}

template <int... J, class Body>
LOOM_INLINE void each_quad(std::integer_sequence<int, J...>, Body body) {
  (body(std::integral_constant<int, J>{}), ...);
}

// The source of a tile's weights: packed groups, or a panel of unpacked bytes of blocks [first,
// first + count).
template <class Format, int R, int G, bool kPanel>
struct Q8Weights {
  const R16& w;
  const std::byte* const* groups;
  const std::byte* panel;
  int64_t first, count;

  // s[r][g] continues over the quads of block b, or of one half of it.
  template <int kQuads, class Sums>
  LOOM_INLINE void add_quads(const Q8Tile& q, int64_t b, int half, Sums& s) const {
    const int64_t code_bytes = kPanel ? 512 : w.block_code_bytes();
    each_quad(std::make_integer_sequence<int, kQuads>{}, [&](auto j) LOOM_INLINE_LAMBDA {
      const int quad = half * kQuads + j;
      Vi a[R];
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        int32_t four;
        std::memcpy(&four, q.codes + r * q.code_stride + b * 32 + quad * 4, 4);
        a[r] = vi_set(four);
      }
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        const std::byte* block = kPanel ? panel + (int64_t{g} * count + (b - first)) * code_bytes
                                        : groups[g] + w.codes + b * code_bytes;
        LOOM_EACH(i) {
          const Vi codes = kPanel ? vi_load(block + quad * 64 + i * 4 * kW)
                                  : unpack_quad<Format>(block, quad, i);
          LOOM_UNROLL for (int r = 0; r < R; ++r) s[r][g][i].template add<j.value>(codes, a[r]);
        }
      }
    });
  }
};

// Prefetches weights for few rows, which are bound by memory. The bytes of a group are contiguous,
// scales first, and the next group follows.
struct Ahead {
  const std::byte* at;
  int64_t step;
  LOOM_INLINE void fetch() {
    for (int64_t i = 0; i < step; i += 64) __builtin_prefetch(at + i);
    at += step;
  }
};

// Minus the zero points and the bias, in the sixteen rows of a group.
template <class Format>
LOOM_INLINE I16 negative_zeros(const R16& w, const std::byte* group, int32_t bias, int64_t block) {
  I16 zero;
  LOOM_EACH(i) {
    if constexpr (Format::zero == ZeroRule::row) {
      zero.v[i] = -(vi_load(group + w.zeros + i * 4 * kW) + bias);
    } else {
      zero.v[i] = -(vi_from_u8(Format::record(w, group, block) + 32 + i * kW) + bias);
    }
  }
  return zero;
}

// acc[r][g] continues over blocks [first, first + count). `panel` holds unpacked bytes of those
// blocks and may be null.
template <class Format, int R, int G, bool kPanel>
LOOM_INLINE void q8_blocks(const R16& w, const std::byte* const* groups, const std::byte* panel,
                           int32_t bias, const Q8Tile& q, int64_t first, int64_t count,
                           V16 (&acc)[R][G]) {
  constexpr int kHalves = Format::halves ? 2 : 1;
  constexpr int kQuads = 8 / kHalves;
  const Q8Weights<Format, R, G, kPanel> weights{w, groups, panel, first, count};
  I16 zero[G];
  if constexpr (Format::zero == ZeroRule::row) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) zero[g] = negative_zeros<Format>(w, groups[g], bias, 0);
  }
  V16 row_step[G];
  if constexpr (Format::row_scaled) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) row_step[g] = load_step<Format>(w, groups[g], 0, 0);
  }
  using Starts = BlockStarts<Format, R>;
  constexpr bool kPrepared = kPanel && Starts::kPrepared;
  Starts starts;
  if constexpr (kPrepared) starts.prepare(q, bias, first, count);
  Ahead ahead{groups[0] + kAhead, G * w.group_bytes / w.blocks};
  for (int64_t b = first; b < first + count; ++b) {
    if constexpr (!kPanel) ahead.fetch();
    if constexpr (Format::zero == ZeroRule::code) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) zero[g] =
          negative_zeros<Format>(w, groups[g], bias, b);
    }
    LOOM_UNROLL for (int half = 0; half < kHalves; ++half) {
      BlockSum<kMaxByte<Format>, kQuads> s[R][G][kNV];
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        const int32_t sum = kPrepared ? 0 : sum_of<Format>(q, r, b, half);
        const int32_t lacks = kPrepared ? 0 : negatives<Format>(q, r, b, half);
        LOOM_UNROLL for (int g = 0; g < G; ++g) {
          LOOM_EACH(i) {
            if constexpr (Format::points) {
              s[r][g][i].total = zero[g].v[i] * sum + lacks;
            } else if constexpr (kPrepared) {
              s[r][g][i].total = vi_set(starts.prepared[r][b - first]);
            } else {
              s[r][g][i].total = vi_set(-bias * sum + lacks);
            }
          }
        }
      }
      weights.template add_quads<kQuads>(q, b, half, s);
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        const V16 step =
            Format::row_scaled ? row_step[g] : load_step<Format>(w, groups[g], b, half);
        V16 offset;
        if constexpr (Format::shifted) offset = load_f16(Format::record(w, groups[g], b) + 32);
        LOOM_UNROLL for (int r = 0; r < R; ++r) {
          const float scale = q.scales[r * q.block_stride + b];
          const auto activations = static_cast<float>(q.sums[r * q.block_stride + b]);
          LOOM_EACH(i) {
            const Vf sum = __builtin_convertvector(s[r][g][i].total, Vf);
            Vf term = sum * (step.v[i] * scale);
            if constexpr (Format::shifted) term = term + activations * (offset.v[i] * scale);
            acc[r][g].v[i] = acc[r][g].v[i] + term;
          }
        }
      }
    }
  }
}

#include "backend/cpu/products/q8_super.inl"

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
  if constexpr (Format::super) {
    q8_super_blocks<Format, R, G, kPanel>(w, groups, panel, bias, q, first, count, acc);
  } else {
    q8_blocks<Format, R, G, kPanel>(w, groups, panel, bias, q, first, count, acc);
  }
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      finish_tile(m, row + r, (group + g) * 16, w.rows, acc[r][g], first + count == w.blocks);
    }
  }
}

template <class Format, int G, bool kPanel>
void q8_rows(const MatmulArgs& m, const R16& w, int32_t bias, LaneRange range, int64_t group,
             const std::byte* panel, int64_t first, int64_t count) {
  const int64_t rows = range.end;
  int64_t row = range.begin;
  for (; row + kQ8TileRows <= rows; row += kQ8TileRows) {
    q8_tile<Format, kQ8TileRows, G, kPanel>(m, w, bias, row, group, panel, first, count);
  }
  for (; row + 2 <= rows; row += 2)
    q8_tile<Format, 2, G, kPanel>(m, w, bias, row, group, panel, first, count);
  if (row < rows) q8_tile<Format, 1, G, kPanel>(m, w, bias, row, group, panel, first, count);
}

// Unpacks blocks [first, first + count) of G groups to bytes, in the order that q8_blocks<kPanel>
// reads.
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
void q8_many_rows(const MatmulArgs& m, const R16& w, int32_t bias, const TileShare& share,
                  std::byte* scratch) {
  const LaneRange rows = share.rows, groups = share.groups;
  for (int64_t group = groups.begin; group < groups.end; group += kQ8TileGroups) {
    const int64_t pair = groups.end - group >= 2 ? kQ8TileGroups : 1;
    for (int64_t first = 0; first < w.blocks; first += kPanelBlocks) {
      const int64_t count = w.blocks - first < kPanelBlocks ? w.blocks - first : kPanelBlocks;
      unpack_panel<Format>(w, m.w.data + group * w.group_bytes, pair, first, count, scratch);
      if (pair == kQ8TileGroups) {
        q8_rows<Format, kQ8TileGroups, true>(m, w, bias, rows, group, scratch, first, count);
      } else {
        q8_rows<Format, 1, true>(m, w, bias, rows, group, scratch, first, count);
      }
    }
  }
}

template <class Format>
void q8_few_rows(const MatmulArgs& m, const R16& w, int32_t bias, LaneRange groups) {
  const LaneRange rows = {0, m.y.rows()};
  int64_t group = groups.begin;
  for (; group + kQ8FewGroups <= groups.end; group += kQ8FewGroups)
    q8_rows<Format, kQ8FewGroups, false>(m, w, bias, rows, group, nullptr, 0, w.blocks);
  for (; group < groups.end; ++group)
    q8_rows<Format, 1, false>(m, w, bias, rows, group, nullptr, 0, w.blocks);
}

template <class Format>
void q8_matmul(const MatmulArgs& m, const R16& w, const Lane& lane) {
  const int32_t bias = level_bias<Format>(dtype_info(w.dtype).code_bias);
  const int64_t rows = m.y.rows();
  if (w.blocks == 0) {  // no k: the sums are empty
    const LaneRange groups = lane.range(w.groups);
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      for (int64_t r = 0; r < rows; ++r) finish_tile(m, r, g * 16, w.rows, set16(0.0f), true);
    }
  } else if (rows >= kPanelMinRows) {
    q8_many_rows<Format>(m, w, bias,
                         tile_share(rows, kQ8TileRows, w.groups, kQ8TileGroups, kUnpackRows, lane),
                         lane.scratch);
  } else {
    q8_few_rows<Format>(m, w, bias, lane.range(w.groups));
  }
}

// Selects the storage form of a dtype from its table row.
inline void matmul_q8(const MatmulArgs& m, const R16& w, const Lane& lane) {
  using enum Levels;
  const DTypeInfo& info = dtype_info(w.dtype);
  const auto is = [&](int bits, Levels levels, ScaleRule scale, ZeroRule zero, int block) {
    const bool row = info.scale == ScaleRule::absmean || info.scale == ScaleRule::meanabs;
    return info.bits == bits && info.levels == levels &&
           (row ? ScaleRule::row : info.scale) == scale && info.zero == zero && info.block == block;
  };
#define LOOM_Q8_FORM(bits, levels, scale, zero, block)                              \
  if (is(bits, levels, ScaleRule::scale, ZeroRule::zero, block)) {                  \
    using Format = Q8Format<bits, levels, ScaleRule::scale, ZeroRule::zero, block>; \
    return q8_matmul<Format>(m, w, lane);                                           \
  }
  LOOM_Q8_FORM(4, direct, f16, none, 32)
  LOOM_Q8_FORM(8, direct, f16, none, 32)
  LOOM_Q8_FORM(8, direct, row, none, 0)
  LOOM_Q8_FORM(8, direct, affine, row, 0)
  LOOM_Q8_FORM(4, direct, row, none, 0)
  LOOM_Q8_FORM(4, direct, affine, row, 0)
  LOOM_Q8_FORM(2, direct, row, none, 0)
  LOOM_Q8_FORM(2, direct, affine, row, 0)
  LOOM_Q8_FORM(1, twice, row, none, 0)
  LOOM_Q8_FORM(4, e2m1, row, none, 0)
  LOOM_Q8_FORM(4, e3m0, row, none, 0)
  LOOM_Q8_FORM(4, e2m1, e8m0, none, 32)
  LOOM_Q8_FORM(4, e2m1, e4m3, none, 16)
  LOOM_Q8_FORM(2, direct, u4, small, 16)
  LOOM_Q8_FORM(3, direct, i6, none, 16)
  LOOM_Q8_FORM(4, direct, u6, small, 32)
  LOOM_Q8_FORM(5, direct, u6, small, 32)
  LOOM_Q8_FORM(6, direct, i8, none, 16)
  LOOM_Q8_FORM(4, direct, f16, f16, 32)
  LOOM_Q8_FORM(5, direct, f16, none, 32)
  LOOM_Q8_FORM(5, direct, f16, f16, 32)
  LOOM_Q8_FORM(4, direct, f16, f16, 64)
  LOOM_Q8_FORM(4, direct, f16, code, 128)
#undef LOOM_Q8_FORM
  reference_ops().matmul(m, lane);
}
