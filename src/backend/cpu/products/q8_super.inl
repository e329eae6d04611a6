// Matmul over super-blocks and q8 activations (docs/numerics.md rule 3). The small integer scales
// enter the integer sums of the blocks of 32, which stay exact. Each super-block adds one term to
// the chain:
//   acc = acc + (scale * sum of [levels] - least * sum of [leasts])
// Each sum is one fused chain over its blocks, ascending.

constexpr int64_t kSuperBlocks = 8;  // blocks of 32 in a super-block
static_assert(kPanelBlocks % kSuperBlocks == 0, "a panel holds whole super-blocks");

// The chains of one super-block.
template <int R, int G>
struct SuperSums {
  V16 levels[R][G], leasts[R][G];
};

// Whether the small integers of a block share a byte.
template <class Format>
constexpr bool kNibbles = Format::scale == ScaleRule::u4;

// Small scales as floats, because no set multiplies 32-bit integers faster. The results stay exact:
// products with the sums of a block, and sums of two such products, are integers below 2^24.
template <class Format>
LOOM_INLINE V16 small_scales(const std::byte* record) {
  I16 r;
  LOOM_EACH(i) {
    r.v[i] = kNibbles<Format> ? vi_from_u8(record + i * kW) & 15 : vi_from_i8(record + i * kW);
  }
  return to_float(r);
}
template <class Format>
LOOM_INLINE V16 small_leasts(const std::byte* record) {
  I16 r;
  LOOM_EACH(i) {
    r.v[i] = kNibbles<Format> ? vi_from_u8(record + i * kW) >> 4 : vi_from_u8(record + 16 + i * kW);
  }
  return to_float(r);
}

// The location of the small integers of block b, half `half`.
template <class Format>
LOOM_INLINE const std::byte* small_record(const R16& w, const std::byte* group, int64_t b,
                                          int half) {
  constexpr int64_t kRecord = Format::shifted && !kNibbles<Format> ? 32 : 16;
  constexpr int64_t kHalves = Format::halves ? 2 : 1;
  return group + w.block_scales + (b * kHalves + half) * kRecord;
}

// The integer sums of block b, each half times its small scale.
template <class Format, int R, int G, bool kPanel>
LOOM_INLINE void scaled_sums(const Q8Weights<Format, R, G, kPanel>& weights, int32_t bias,
                             const Q8Tile& q, int64_t b, V16 (&sums)[R][G]) {
  constexpr int kHalves = Format::halves ? 2 : 1;
  constexpr int kQuads = 8 / kHalves;
  LOOM_UNROLL for (int half = 0; half < kHalves; ++half) {
    BlockSum<kMaxByte<Format>, kQuads> s[R][G][kNV];
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      const int32_t start = -bias * sum_of<Format>(q, r, b, half);
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        LOOM_EACH(i) s[r][g][i].total = vi_set(start);
      }
    }
    weights.template add_quads<kQuads>(q, b, half, s);
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      const V16 scales =
          small_scales<Format>(small_record<Format>(weights.w, weights.groups[g], b, half));
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        LOOM_EACH(i) {
          const Vf part = __builtin_convertvector(s[r][g][i].total, Vf) * scales.v[i];
          sums[r][g].v[i] = half == 0 ? part : sums[r][g].v[i] + part;
        }
      }
    }
  }
}

// The subtracted counterpart: small least values times sums of activations.
template <class Format, int R, int G, bool kPanel>
LOOM_INLINE void min_sums(const Q8Weights<Format, R, G, kPanel>& weights, const Q8Tile& q,
                          int64_t b, V16 (&sums)[R][G]) {
  constexpr int kHalves = Format::halves ? 2 : 1;
  LOOM_UNROLL for (int half = 0; half < kHalves; ++half) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      const V16 leasts =
          small_leasts<Format>(small_record<Format>(weights.w, weights.groups[g], b, half));
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        const auto activations = static_cast<float>(sum_of<Format>(q, r, b, half));
        LOOM_EACH(i) {
          const Vf part = leasts.v[i] * activations;
          sums[r][g].v[i] = half == 0 ? part : sums[r][g].v[i] + part;
        }
      }
    }
  }
}

// chain[r][g] continues with the sums of block b.
template <int R, int G>
LOOM_INLINE void add_sums(const V16 (&sums)[R][G], const Q8Tile& q, int64_t b, V16 (&chain)[R][G]) {
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    const float scale = q.scales[r * q.block_stride + b];
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      LOOM_EACH(i) {
        chain[r][g].v[i] = vf_fma(sums[r][g].v[i], scale, chain[r][g].v[i]);
      }
    }
  }
}

// acc[r][g] takes the term of super-block `index`.
template <class Format, int R, int G>
LOOM_INLINE void add_term(const R16& w, const std::byte* const* groups, int64_t index,
                          const SuperSums<R, G>& sums, V16 (&acc)[R][G]) {
  LOOM_UNROLL for (int g = 0; g < G; ++g) {
    const std::byte* super = groups[g] + w.super_scales + index * (Format::shifted ? 64 : 32);
    const V16 scale = load_f16(super);
    V16 least;
    if constexpr (Format::shifted) least = load_f16(super + 32);
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_EACH(i) {
        Vf term = scale.v[i] * sums.levels[r][g].v[i];
        if constexpr (Format::shifted) term = term - least.v[i] * sums.leasts[r][g].v[i];
        acc[r][g].v[i] = acc[r][g].v[i] + term;
      }
    }
  }
}

// acc[r][g] continues over blocks [first, first + count), `first` at the start of a super-block.
template <class Format, int R, int G, bool kPanel>
LOOM_INLINE void q8_super_blocks(const R16& w, const std::byte* const* groups,
                                 const std::byte* panel, int32_t bias, const Q8Tile& q,
                                 int64_t first, int64_t count, V16 (&acc)[R][G]) {
  const Q8Weights<Format, R, G, kPanel> weights{w, groups, panel, first, count};
  Ahead ahead{groups[0] + kAhead, G * w.group_bytes / w.blocks};
  for (int64_t b = first; b < first + count;) {
    const int64_t index = b / kSuperBlocks;
    const int64_t left = first + count - b;
    const int64_t end = b + (left < kSuperBlocks ? left : kSuperBlocks);
    SuperSums<R, G> chains;
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        chains.levels[r][g] = set16(0.0f);
        chains.leasts[r][g] = set16(0.0f);
      }
    }
    for (; b < end; ++b) {
      if constexpr (!kPanel) ahead.fetch();
      V16 sums[R][G];
      scaled_sums<Format>(weights, bias, q, b, sums);
      add_sums(sums, q, b, chains.levels);
      if constexpr (Format::shifted) {
        min_sums<Format>(weights, q, b, sums);
        add_sums(sums, q, b, chains.leasts);
      }
    }
    add_term<Format>(w, groups, index, chains, acc);
  }
}
