// Convolution tiles with filters in the lanes: sixteen packed filters of a group against some
// adjacent outputs of a row. Unlike tiles of adjacent positions they compute nothing between the
// rows, which pays if rows are short. Instruction sets with registers for only two rows gain
// little, so they leave this path out to save size.
constexpr bool kFiltersInLanes = kFloatTileRows > 2;

// R outputs in a row of G groups of filters, through all chunks.
struct LaneTile {
  const float* w;         // [G][k][16]
  int64_t group_stride;   // floats between groups
  const float* plane;     // the first output's first value
  const int32_t* offset;  // of each k
  int64_t depth;
  float* y;  // [R][kPlaneColumns]
};

template <int R, int G>
void lane_tile(const LaneTile& t) {
  const float* w = t.w;
  const int64_t group_stride = t.group_stride;
  for (int64_t first = 0; first < t.depth; first += kChunk) {
    V16 s[R][G];
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
    }
    const int32_t* const end = t.offset + (t.depth - first < kChunk ? t.depth : first + kChunk);
    for (const int32_t* at = t.offset + first; at != end; ++at, w += 16) {
      V16 weight[G];
      LOOM_UNROLL for (int g = 0; g < G; ++g) weight[g] = load16(w + g * group_stride);
      const float* const x = t.plane + *at;
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        const float a = x[r];
        LOOM_UNROLL for (int g = 0; g < G; ++g) {
          LOOM_EACH(i) s[r][g].v[i] = vf_fma(weight[g].v[i], a, s[r][g].v[i]);
        }
      }
    }
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        float* const y = t.y + r * kPlaneColumns + g * 16;
        store16(y, first == 0 ? from_zero16(s[r][g]) : add16(load16(y), s[r][g]));
      }
    }
  }
}

using LaneTileFn = void (*)(const LaneTile&);
struct LaneTiles {
  LaneTileFn of[2][kFloatTileRows];  // [groups - 1][outputs - 1]
};
template <int... R>
constexpr LaneTiles lane_tiles(std::integer_sequence<int, R...>) {
  return {{{lane_tile<R + 1, 1>...}, {lane_tile<R + 1, kFloatTileGroups>...}}};
}
constexpr LaneTiles kLaneTiles = lane_tiles(std::make_integer_sequence<int, kFloatTileRows>{});

// Adds bias and activation of up to sixteen filters at `count` outputs, [count][kPlaneColumns], and
// writes them to rows of y.
inline void finish_lanes(const ConvArgs& a, int64_t filter, int64_t filters, const float* sums,
                         int64_t count, float* y, int64_t y_stride) {
  const V16 bias = !a.bias.empty() ? load16_n(a.bias.f32() + filter, filters) : set16(0.0f);
  float rows[256], lanes[256];
  for (int64_t r = 0; r < 16; ++r) {
    store16(rows + r * 16,
            r < count ? finish16(a, load16(sums + r * kPlaneColumns), bias) : set16(0.0f));
  }
  transpose16(rows, 16, lanes, 16);
  for (int64_t f = 0; f < filters; ++f) store16_n(y + f * y_stride, load16(lanes + f * 16), count);
}
