// conv over one or two axes: a lane copies its part of a group of channels into planes with the
// padding around it. For each k of the patch, sixteen adjacent outputs then read sixteen values in
// a row of a plane. The tile walks a table of offsets. Outputs between the rows of a plane are
// computed and dropped. With strides a channel has one plane per remainder of its rows and of its
// columns, so that adjacent outputs read adjacent values there too:
//   plane [channels][remainders of rows][remainders of columns][height][width]
// If rows are short, filters are in the lanes instead (conv_lanes.inl) and read the same planes.
// Samples without padding and strides serve as planes in place.

// to[j] = row[first + j stride] for j in [0, n), 0 if that is outside of [0, extent).
LOOM_INLINE void copy_every(float* to, const float* row, int64_t first, int64_t stride,
                            int64_t extent, int64_t n) {
  if (stride == 1) return copy_between(to, row + first, -first, extent - first, n);
  int64_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
  int64_t end = extent > first ? (extent - first + stride - 1) / stride : 0;
  begin = begin < n ? begin : n;
  end = end < begin ? begin : end < n ? end : n;
  for (int64_t j = 0; j < begin; ++j) to[j] = 0.0f;
  int64_t j = begin;
  if (stride == 2) {
    for (; j + 16 <= end; j += 16) store16(to + j, load16_second(row + first + j * 2));
  }
  for (; j < end; ++j) to[j] = row[first + j * stride];
  for (; j < n; ++j) to[j] = 0.0f;
}

// One chunk of R filters at G * 16 adjacent positions.
struct PlaneTile {
  const float* w;         // of the first filter: [k][16]
  const float* plane;     // the first position
  const int32_t* offset;  // of each k
  int64_t n;              // k of this chunk
  float* y;
  int64_t y_stride;
  bool add;  // to the sums of earlier chunks in y
};
// A tile of a single filter has spare registers for sums.
constexpr int kWideGroups = kW == 16 ? 8 : 4;
constexpr int64_t kWideColumns = kWideGroups * 16;

template <int R, int G>
void plane_tile(const PlaneTile& t) {
  const float* w = t.w;
  V16 s[R][G];
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
  }
  const int32_t* const end = t.offset + t.n;
  for (const int32_t* at = t.offset; at != end; ++at, w += 16) {
    V16 x[G];
    LOOM_UNROLL for (int g = 0; g < G; ++g) x[g] = load16(t.plane + *at + g * 16);
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      const float a = w[r];
      LOOM_UNROLL for (int g = 0; g < G; ++g) {
        LOOM_EACH(i) s[r][g].v[i] = vf_fma(x[g].v[i], a, s[r][g].v[i]);
      }
    }
  }
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    LOOM_UNROLL for (int g = 0; g < G; ++g) {
      float* const y = t.y + r * t.y_stride + g * 16;
      store16(y, t.add ? add16(load16(y), s[r][g]) : from_zero16(s[r][g]));
    }
  }
}

using PlaneTileFn = void (*)(const PlaneTile&);
struct PlaneTiles {
  PlaneTileFn of[LaneRows::kHeight];
};
template <int... R>
constexpr PlaneTiles plane_tiles(std::integer_sequence<int, R...>) {
  return {{plane_tile<R + 1, kFloatTileGroups>...}};
}
constexpr PlaneTiles kPlaneTiles =
    plane_tiles(std::make_integer_sequence<int, LaneRows::kHeight>{});

// Outputs [row, row + rows) x [col, col + cols) of a sample, over axes 1 and 2.
struct Patchwork {
  int64_t row, rows, col, cols;
};

// One lane's share of a convolution over at most two axes.
struct PlaneConv {
  const ConvArgs* a;
  ConvShape s;
  R16 w;
  int64_t channels, columns;  // of a group; of a tile
  bool lanes, in_place;       // filters in the lanes; the samples serve as the plane, in place
  DecodedGroups weights;
  int32_t* offset;
  float* plane;
  const float* first = nullptr;  // the first value of the first output, in the plane or in place

  int64_t reach(int axis) const { return (s.kernel[axis] - 1) * s.dilation[axis]; }
  int64_t extent(int axis, int64_t n) const { return n + reach(axis) / s.stride[axis]; }
  int64_t plane_width(const Patchwork& p) const { return in_place ? s.in[2] : extent(2, p.cols); }
  int64_t remainders(int axis) const {
    return s.stride[axis] < reach(axis) + 1 ? s.stride[axis] : reach(axis) + 1;
  }
  // Floats of a plane, followed by the sums of up to sixteen filters at its positions. The last
  // tiles read past the plane.
  int64_t plane_floats(int64_t rows, int64_t cols) const {
    return channels * remainders(1) * remainders(2) * extent(1, rows) * extent(2, cols) +
           2 * columns;
  }
  int64_t sums_stride(int64_t rows, int64_t cols) const {
    return round_up((rows - 1) * extent(2, cols) + cols, columns);
  }
  // Computed in double, which does not overflow: strides and dilations are unbounded.
  double floats(int64_t rows, int64_t cols) const {
    if (in_place) return 0.0;
    double positions = 1.0, all = static_cast<double>(channels);
    for (int axis = 1; axis < 3; ++axis) {
      const double seen = static_cast<double>(extent(axis, axis == 1 ? rows : cols));
      positions *= seen;
      all *= seen * static_cast<double>(remainders(axis));
    }
    const double kept = static_cast<double>(lanes ? 0 : max_filters());
    return all + static_cast<double>(3 * columns) +
           kept * (positions + static_cast<double>(columns));
  }
  int64_t max_filters() const { return columns == kWideColumns ? 1 : 16; }

  void fill_offsets(const Patchwork& p) const {
    const int64_t width = plane_width(p);
    const int64_t size = in_place ? s.in_positions() : extent(1, p.rows) * width;
    int32_t* to = offset;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < s.kernel[1]; ++i) {
        const int64_t row = i * s.dilation[1];
        const int64_t planes = (c * remainders(1) + row % s.stride[1]) * remainders(2);
        for (int64_t j = 0; j < s.kernel[2]; ++j) {
          const int64_t col = j * s.dilation[2];
          *to++ = static_cast<int32_t>((planes + col % s.stride[2]) * size +
                                       row / s.stride[1] * width + col / s.stride[2]);
        }
      }
    }
  }

  // x: the first channel of the group.
  void fill_plane(const float* x, const Patchwork& p) const {
    const int64_t width = extent(2, p.cols), height = extent(1, p.rows);
    float* to = plane;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t q = 0; q < remainders(1); ++q) {
        for (int64_t m = 0; m < remainders(2); ++m) {
          for (int64_t r = 0; r < height; ++r, to += width) {
            const int64_t i = (p.row + r) * s.stride[1] + q - s.pad[1];
            const bool inside = i >= 0 && i < s.in[1];
            copy_every(to, x + (c * s.in[1] + (inside ? i : 0)) * s.in[2],
                       p.col * s.stride[2] + m - s.pad[2], s.stride[2], inside ? s.in[2] : 0,
                       width);
          }
        }
      }
    }
    for (int64_t j = 0; j < 2 * columns; ++j) to[j] = 0.0f;
  }

  // Copies the sums of `rows` filters without the gaps between the rows of the output.
  void keep(const float* sums, float* y, const Patchwork& p, int64_t filter, int64_t rows) const {
    const int64_t width = extent(2, p.cols), stride = sums_stride(p.rows, p.cols);
    for (int64_t f = 0; f < rows; ++f) {
      for (int64_t r = 0; r < p.rows; ++r) {
        float* const to = y + ((filter + f) * s.out[1] + p.row + r) * s.out[2] + p.col;
        const float* const from = sums + f * stride + r * width;
        for (int64_t i = 0; i < p.cols; i += 16)
          store16_n(to + i, load16_n(from + i, p.cols - i), p.cols - i);
      }
    }
  }

  // One chunk of `count` filters, all of one group of sixteen, at the positions of a tile.
  void tiles(PlaneTile t, int64_t count) const {
    if (columns == kWideColumns) return plane_tile<1, kWideGroups>(t);
    const float* const w_first = t.w;
    float* const y_first = t.y;
    const int64_t parts = (count + LaneRows::kHeight - 1) / LaneRows::kHeight;
    for (int64_t i = 0; i < parts; ++i) {
      const LaneRange part = lane_range(count, 1, static_cast<int>(i), static_cast<int>(parts));
      t.w = w_first + part.begin;
      t.y = y_first + part.begin * t.y_stride;
      kPlaneTiles.of[part.end - part.begin - 1](t);
    }
  }

  // Whether the output can take the sums directly, because no tile crosses the end of its row. In a
  // single row the last tile may recompute earlier outputs, unless it would add to them.
  bool direct(int64_t rows, int64_t cols) const {
    return cols % columns == 0 || (rows == 1 && cols >= columns && w.cols <= kChunk);
  }

  // Whether outputs read only samples, contiguously. Tiles of positions read whole registers, which
  // must not reach past their row.
  bool reads_in_place() const {
    for (int axis = 1; axis < 3; ++axis) {
      if (s.stride[axis] != 1 || s.pad[axis] != 0 || s.out[axis] + reach(axis) > s.in[axis])
        return false;
    }
    if (channels * s.in_positions() > INT32_MAX) return false;
    return lanes || (s.out[1] == 1 && s.in[2] == s.out[2] && direct(1, s.out[2]));
  }

  // Runs chunk by chunk, so that the weights of one chunk stay in the nearest cache. If the output
  // cannot take the sums, the memory after the plane does.
  void positions(float* y, const Patchwork& p, int64_t filter, int64_t count) {
    const bool direct = this->direct(p.rows, p.cols);
    const int64_t width = plane_width(p), runs = direct ? p.rows : 1;
    const int64_t run = direct ? p.cols : sums_stride(p.rows, p.cols);
    float* const sums = direct ? y + (filter * s.out[1] + p.row) * s.out[2] + p.col
                               : plane + plane_floats(p.rows, p.cols);
    const int64_t stride = direct ? s.out_positions() : run;
    const float* const first_weights = weights.of(filter);
    for (int64_t k = 0; k < w.cols; k += kChunk) {
      const int64_t n = w.cols - k < kChunk ? w.cols - k : kChunk;
      for (int64_t r = 0; r < runs; ++r) {
        for (int64_t next = 0; next < run; next += columns) {
          const int64_t at = run - next < columns ? run - columns : next;
          tiles({first_weights + k * 16, first + r * width + at, offset + k, n,
                 sums + r * s.out[2] + at, stride, k > 0},
                count);
        }
      }
    }
    for (int64_t f = 0; f < count; ++f) {
      for (int64_t r = 0; r < runs; ++r)
        finish_filter(*a, filter + f, sums + f * stride + r * s.out[2], run);
    }
    if (!direct) keep(sums, y, p, filter, count);
  }

  // Up to one tile's groups of filters, at all outputs.
  void rows_of(float* y, const Patchwork& p, int64_t filter, int64_t count) {
    float sums[kFloatTileRows * kPlaneColumns];
    const int64_t width = plane_width(p), outputs = s.out_positions();
    const int64_t parts = (p.cols + kFloatTileRows - 1) / kFloatTileRows;
    LaneTile t{weights.of(filter), weights.stride(), first, offset, w.cols, sums};
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t i = 0; i < parts; ++i) {
        const LaneRange part = lane_range(p.cols, 1, static_cast<int>(i), static_cast<int>(parts));
        const int64_t n = part.end - part.begin;
        t.plane = first + r * width + part.begin;
        kLaneTiles.of[count > 16][n - 1](t);
        float* const to = y + filter * outputs + (p.row + r) * s.out[2] + p.col + part.begin;
        for (int64_t f = 0; f < count; f += 16) {
          finish_lanes(*a, filter + f, count - f < 16 ? count - f : 16, sums + f, n,
                       to + f * outputs, outputs);
        }
      }
    }
  }

  // The filters of a range, all of one group of channels, for a part of a sample.
  void run(int64_t sample, LaneRange filters, const Patchwork& p) {
    const int64_t group = filters.begin / (s.filters / s.groups);
    const float* const x = a->x.f32_row(sample) + group * channels * s.in_positions();
    float* const y = a->y.f32_row(sample);
    first = in_place ? x + p.row * s.in[2] + p.col : plane;
    if (!in_place) fill_plane(x, p);
    const int64_t most = lanes ? kPlaneColumns : max_filters();
    for (int64_t f = filters.begin; f < filters.end;) {
      const int64_t left = filters.end - f, rest = most - f % most;
      const int64_t count = left < rest ? left : rest;
      if constexpr (kFiltersInLanes) {
        if (lanes) rows_of(y, p, f, count);
      }
      if (!lanes) positions(y, p, f, count);
      f += count;
    }
  }
};

// Whether filters belong in the lanes. Compares the sums that the tiles of both layouts compute.
// Transposing one block of sixteen by sixteen sums is taken to cost as much as twelve k.
inline bool filters_in_lanes(const PlaneConv& c) {
  const int64_t filters = c.s.filters / c.s.groups;
  if (!kFiltersInLanes || filters < 16 || (c.s.groups > 1 && filters % 16 != 0)) return false;
  const auto share = [](int64_t used, int64_t n) {
    return static_cast<double>(used) / static_cast<double>(n);
  };
  const double outputs = share(c.sums_stride(c.s.out[1], c.s.out[2]), c.s.out_positions());
  return share(round_up(filters, 16), filters) * share(c.w.cols + 12, c.w.cols) < outputs;
}

// Whether lanes share filters rather than outputs. They do if cutting filters is more even, and if
// there are enough filters to be worth a plane in each lane.
inline bool share_filters(const ConvShape& s, int64_t outputs, const Lane& lane) {
  constexpr int64_t kWorth = 32;
  const int64_t n = lane.count, pieces = s.filters / 8;
  if (s.groups != 1 || n == 1 || s.filters < kWorth * n) return false;
  const int64_t by_outputs = (outputs + n - 1) / n * n * pieces;
  return (pieces + n - 1) / n * n * outputs < by_outputs;
}

// A kernel of one value is the same along one axis: rows have no ends.
inline ConvShape flattened(ConvShape s) {
  for (int a = 1; a < 3; ++a) {
    if (s.kernel[a] != 1 || s.stride[a] != 1 || s.pad[a] != 0 || s.in[a] != s.out[a]) return s;
  }
  s.in[2] *= s.in[1], s.out[2] *= s.out[1];
  s.in[1] = s.out[1] = 1;
  return s;
}

// Splits the outputs into bands of rows (of columns if there is one row) that fit the scratch.
// False if none fits.
inline bool conv_by_planes(const ConvArgs& a, const ConvShape& shape, const R16& w,
                           const Lane& lane) {
  if (!axis_unused(shape, 0) || w.cols > ConvArgs::kLongPatch) return false;
  PlaneConv conv{&a, flattened(shape), w};
  const ConvShape& s = conv.s;
  const int64_t filters = s.filters / s.groups, depth = round_up(w.cols, 16);
  conv.channels = s.channels / s.groups;
  conv.columns = filters == 1 ? kWideColumns : kPlaneColumns;
  conv.lanes = filters_in_lanes(conv);
  conv.in_place = conv.reads_in_place();
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  conv.offset = reinterpret_cast<int32_t*>(scratch);
  conv.weights = {&conv.w, a.w.data, scratch + depth, conv.lanes ? kFloatTileGroups : 1};
  conv.plane = scratch + depth * (w.dtype == DType::f32 ? 1 : 1 + 16 * conv.weights.most);
  const int64_t room = lane.scratch_bytes / 4 - (conv.plane - scratch);
  const bool by_row = s.out[1] > 1;
  const int64_t whole = by_row ? s.out[1] : s.out[2];
  const auto fits = [&](int64_t n) {
    return (by_row ? conv.floats(n, s.out[2]) : conv.floats(1, n)) <= static_cast<double>(room);
  };
  if (!fits(1)) return false;
  // Whole tiles of columns, if there are several.
  const int64_t tile = conv.lanes ? kFloatTileRows : conv.columns;
  const int64_t grain = by_row || !fits(tile) ? 1 : tile;
  // In place, every unit has at least one tile.
  const int64_t part = conv.in_place && whole >= grain ? 0 : grain - 1;
  const int64_t units = (whole + part) / grain;
  const bool by_filter = share_filters(s, a.x.rows() * units, lane);
  const LaneRange mine = by_filter ? lane.range(s.filters, conv.lanes ? 16 : 8) : LaneRange{0, 0};
  const LaneRange work =
      by_filter ? LaneRange{0, a.x.rows() * units} : lane.range(a.x.rows() * s.groups * units);
  int64_t filled = -1;
  for (int64_t t = work.begin; t < work.end && (!by_filter || mine.begin < mine.end);) {
    const int64_t at = t % units, piece = t / units;
    int64_t n = work.end - t < units - at ? work.end - t : units - at;
    while (!fits(n * grain)) n = (n + 1) / 2;
    const int64_t first = at * grain;
    const int64_t run = at + n == units ? whole - first : n * grain;
    const Patchwork p = by_row ? Patchwork{first, run, 0, s.out[2]} : Patchwork{0, 1, first, run};
    if (run != filled) conv.fill_offsets(p);
    filled = run;
    const int64_t group = by_filter ? 0 : piece % s.groups;
    conv.run(by_filter ? piece : piece / s.groups,
             by_filter ? mine : LaneRange{group * filters, (group + 1) * filters}, p);
    t += n;
  }
  return true;
}

// A single output that sees its whole sample is a product of matrices.
inline bool conv_by_matmul(const ConvArgs& a, const ConvShape& s, const R16& w, const Lane& lane) {
  if (s.groups != 1 || s.out_positions() != 1 || w.cols != s.channels * s.in_positions())
    return false;
  for (int i = 0; i < 3; ++i) {
    if (s.pad[i] != 0 || s.kernel[i] != s.in[i] || s.dilation[i] != 1) return false;
  }
  MatmulArgs m;
  m.x = a.x, m.w = a.w, m.bias = a.bias, m.y = a.y;
  m.activation = a.activation;
  matmul_float(m, w, lane);
  return true;
}
