// Depthwise conv over two axes: each filter sees one channel. A lane copies a channel into a plane
// with the padding around it. A tile is sixteen outputs of each of some rows. With strides a row
// has a part for each remainder of its columns, so that adjacent outputs read adjacent values:
//   plane [rows][remainders][pitch]
// The values left and right of the samples stay zero from channel to channel.

constexpr int kDepthRows = kW == 16 ? 8 : kW == 8 ? 4 : kW == 4 ? 2 : 1;

struct DepthTile {
  const ConvArgs* a;
  const float* w;         // of the filter: [k][16]
  const float* plane;     // the first output's first value
  const int32_t* offset;  // of each k
  int64_t taps, row_step;
  float bias;
  float* y;
  int64_t y_stride, columns;
};

template <int R>
void depth_tile(const DepthTile& t) {
  V16 s[R];
  const int64_t row_step = t.row_step;
  LOOM_UNROLL for (int r = 0; r < R; ++r) s[r] = set16(0.0f);
  const float* w = t.w;
  for (const int32_t *at = t.offset, *end = at + t.taps; at != end; ++at, w += 16) {
    const float* const x = t.plane + *at;
    const float weight = *w;
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      const V16 seen = load16(x + r * row_step);
      LOOM_EACH(i) s[r].v[i] = vf_fma(seen.v[i], weight, s[r].v[i]);
    }
  }
  const V16 bias = set16(t.bias);
  for (int r = 0; r < R; ++r)
    store16_n(t.y + r * t.y_stride, finish16(*t.a, from_zero16(s[r]), bias), t.columns);
}

using DepthTileFn = void (*)(const DepthTile&);
struct DepthTiles {
  DepthTileFn of[kDepthRows];
};
template <int... R>
constexpr DepthTiles depth_tiles(std::integer_sequence<int, R...>) {
  return {{depth_tile<R + 1>...}};
}
constexpr DepthTiles kDepthTiles = depth_tiles(std::make_integer_sequence<int, kDepthRows>{});

struct DepthConv {
  const ConvArgs* a;
  ConvShape s;
  DecodedGroups weights;
  int32_t* offset;
  float* plane;

  int64_t reach(int axis) const { return (s.kernel[axis] - 1) * s.dilation[axis]; }
  int64_t remainders() const { return s.stride[2] < reach(2) + 1 ? s.stride[2] : reach(2) + 1; }
  // Whole registers are read and written, past the last output and the last value.
  int64_t pitch() const {
    const int64_t read = round_up(s.out[2], 16) + reach(2) / s.stride[2];
    const int64_t written = (s.pad[2] + s.in[2]) / s.stride[2] + 17;
    return round_up(read > written ? read : written, 16);
  }
  int64_t row_floats() const { return remainders() * pitch(); }
  int64_t height(int64_t rows) const { return (rows - 1) * s.stride[1] + reach(1) + 1; }
  // Strides and dilations are unbounded, so this check avoids products that could overflow.
  bool fits(int64_t rows, int64_t room) const {
    return remainders() <= room / pitch() && height(rows) <= room / row_floats();
  }

  void fill_offsets() const {
    int32_t* to = offset;
    for (int64_t i = 0; i < s.kernel[1]; ++i) {
      for (int64_t j = 0; j < s.kernel[2]; ++j) {
        const int64_t col = j * s.dilation[2];
        *to++ = static_cast<int32_t>(i * s.dilation[1] * row_floats() +
                                     col % s.stride[2] * pitch() + col / s.stride[2]);
      }
    }
  }

  // One row of samples, without the padding on both sides.
  void fill_row(const float* row, float* to) const {
    const int64_t stride = s.stride[2];
    if (stride == 1) {
      for (int64_t j = 0; j < s.in[2]; j += 16)
        store16(to + s.pad[2] + j, load16_n(row + j, s.in[2] - j));
      return;
    }
    for (int64_t m = 0; m < remainders(); ++m) {
      const int64_t at = s.pad[2] > m ? (s.pad[2] - m + stride - 1) / stride : 0;
      const int64_t first = at * stride + m - s.pad[2];
      const int64_t n = first < s.in[2] ? (s.in[2] - first + stride - 1) / stride : 0;
      copy_every(to + m * pitch() + at, row, first, stride, s.in[2], n);
    }
  }

  // Copies the values of a channel that outputs of `rows` read.
  void fill_plane(const float* channel, LaneRange rows) const {
    const int64_t rows_seen = height(rows.end - rows.begin);
    float* to = plane;
    for (int64_t r = 0; r < rows_seen; ++r, to += row_floats()) {
      const int64_t i = rows.begin * s.stride[1] + r - s.pad[1];
      if (i >= 0 && i < s.in[1]) {
        fill_row(channel + i * s.in[2], to);
      } else {
        std::memset(to, 0, static_cast<size_t>(row_floats()) * 4);
      }
    }
  }

  void filter(int64_t f, LaneRange rows, float* y) {
    DepthTile t{a, weights.of(f), nullptr, offset, s.taps(), s.stride[1] * row_floats()};
    t.bias = a->bias.empty() ? 0.0f : a->bias.f32()[f];
    t.y_stride = s.out[2];
    const int64_t count = rows.end - rows.begin, parts = (count + kDepthRows - 1) / kDepthRows;
    for (int64_t i = 0; i < parts; ++i) {
      const LaneRange part = lane_range(count, 1, static_cast<int>(i), static_cast<int>(parts));
      for (int64_t c = 0; c < s.out[2]; c += 16) {
        t.plane = plane + part.begin * t.row_step + c;
        t.y = y + (f * s.out[1] + rows.begin + part.begin) * s.out[2] + c;
        t.columns = s.out[2] - c;
        kDepthTiles.of[part.end - part.begin - 1](t);
      }
    }
  }

  void run(int64_t sample, int64_t channel, LaneRange rows) {
    fill_plane(a->x.f32_row(sample) + channel * s.in_positions(), rows);
    const int64_t filters = s.filters / s.groups;
    for (int64_t f = channel * filters; f < (channel + 1) * filters; ++f)
      filter(f, rows, a->y.f32_row(sample));
  }
};

// Lanes share channels. They share bands of rows too if a plane would not fit or there are few
// channels.
inline bool conv_by_depth(const ConvArgs& a, const ConvShape& s, const R16& w, const Lane& lane) {
  constexpr int64_t kSmallRows = 4;  // with fewer rows, too few sums run at a time
  if (s.channels != s.groups || !axis_unused(s, 0) || s.out[1] < kSmallRows || s.taps() > kChunk)
    return false;
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  DepthConv conv{&a,
                 s,
                 {&w, a.w.data, scratch + kChunk, 1},
                 reinterpret_cast<int32_t*>(scratch),
                 scratch + kChunk * 17};
  const int64_t room = lane.scratch_bytes / 4 - kChunk * 17, pieces = a.x.rows() * s.groups;
  int64_t bands = pieces < lane.count && lane.count < s.out[1] ? lane.count : 1;
  const auto most = [&] { return (s.out[1] + bands - 1) / bands; };
  while (bands < s.out[1] && !conv.fits(most(), room)) ++bands;
  if (!conv.fits(most(), room)) return false;
  conv.fill_offsets();
  std::memset(conv.plane, 0, static_cast<size_t>(conv.height(most()) * conv.row_floats()) * 4);
  const LaneRange work = lane.range(pieces * bands);
  for (int64_t t = work.begin; t < work.end; ++t) {
    const int64_t band = t % bands, piece = t / bands;
    conv.run(piece / s.groups, piece % s.groups,
             lane_range(s.out[1], 1, static_cast<int>(band), static_cast<int>(bands)));
  }
  return true;
}
