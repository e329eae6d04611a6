// conv over one or two axes: a lane copies its part of a group of channels into planes with the
// padding around it; sixteen outputs in a row then see, for each k of the patch, sixteen values in
// a row of a plane, and the tile walks a table of offsets. Outputs between the rows of a plane are
// computed and dropped. With strides a channel has a plane for each remainder of its rows and of
// its columns, so that the values of neighbouring outputs are neighbours there too:
//   plane [channels][remainders of rows][remainders of columns][height][width]

// to[j] = row[first + j stride] for j in [0, n), 0 where that is outside of [0, extent).
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

struct PlaneTile {
  const float* w;         // the first filter of the tile: [k][16]
  const float* plane;     // the first position
  const int32_t* offset;  // of each k
  int64_t depth;
  float* y;
  int64_t y_stride;
};
// Columns of a tile, and of one for a single filter, which has sums to spare.
constexpr int kWideGroups = 4;
constexpr int64_t kPlaneColumns = kFloatTileGroups * 16, kWideColumns = kWideGroups * 16;
constexpr int64_t kPlaneDepth = 4096;  // k of a patch
constexpr int64_t kTileFloats =
    16 * kPlaneColumns > kWideColumns ? 16 * kPlaneColumns : kWideColumns;
constexpr int64_t kPlaneFloats = kMatmulScratch / 4 - kPlaneDepth - kTileFloats;

template <int R, int G>
void plane_tile(const PlaneTile& t) {
  const float* w = t.w;
  for (int64_t first = 0; first < t.depth; first += kChunk) {
    V16 s[R][G];
    LOOM_UNROLL for (int r = 0; r < R; ++r) {
      LOOM_UNROLL for (int g = 0; g < G; ++g) s[r][g] = set16(0.0f);
    }
    const int32_t* const end = t.offset + (t.depth - first < kChunk ? t.depth : first + kChunk);
    for (const int32_t* at = t.offset + first; at != end; ++at, w += 16) {
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
        store16(y, first == 0 ? from_zero16(s[r][g]) : add16(load16(y), s[r][g]));
      }
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
  int32_t* offset;
  float *tile, *plane;

  int64_t reach(int axis) const { return (s.kernel[axis] - 1) * s.dilation[axis]; }
  int64_t extent(int axis, int64_t n) const { return n + reach(axis) / s.stride[axis]; }
  int64_t remainders(int axis) const {
    return s.stride[axis] < reach(axis) + 1 ? s.stride[axis] : reach(axis) + 1;
  }
  int64_t floats(int64_t rows, int64_t cols) const {
    return channels * remainders(1) * remainders(2) * extent(1, rows) * extent(2, cols) +
           2 * columns;
  }

  void fill_offsets(const Patchwork& p) const {
    const int64_t width = extent(2, p.cols), size = extent(1, p.rows) * width;
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

  // What of a tile of `rows` filters lies in rows of the output, from position `at` of the plane.
  void keep(float* y, const Patchwork& p, int64_t filter, int64_t rows, int64_t at) const {
    const int64_t width = extent(2, p.cols);
    for (int64_t done = 0; done < columns;) {
      const int64_t row = (at + done) / width, col = (at + done) % width;
      const int64_t run = width - col < columns - done ? width - col : columns - done;
      const int64_t n = p.cols - col < run ? p.cols - col : run;
      for (int64_t r = 0; r < rows && row < p.rows && n > 0; ++r) {
        float* const to = y + ((filter + r) * s.out[1] + p.row + row) * s.out[2] + p.col + col;
        for (int64_t i = 0; i < n; i += 16)
          store16_n(to + i, load16_n(tile + r * columns + done + i, n - i), n - i);
      }
      done += run;
    }
  }

  // A tile of `count` filters, all of one group of sixteen, from position `at` of the plane.
  void tiles(int64_t filter, int64_t count, int64_t at, float* to, int64_t stride) const {
    const float* weights =
        reinterpret_cast<const float*>(a->w.data + filter / 16 * w.group_bytes) + filter % 16;
    PlaneTile t{weights, plane + at, offset, w.cols, to, stride};
    if (columns == kWideColumns) {
      plane_tile<1, kWideGroups>(t);
    } else {
      const int64_t parts = (count + LaneRows::kHeight - 1) / LaneRows::kHeight;
      for (int64_t i = 0; i < parts; ++i) {
        const LaneRange part = lane_range(count, 1, static_cast<int>(i), static_cast<int>(parts));
        t.w = weights + part.begin;
        t.y = to + part.begin * stride;
        kPlaneTiles.of[part.end - part.begin - 1](t);
      }
    }
    for (int64_t f = 0; f < count; ++f) finish_filter(*a, filter + f, to + f * stride, columns);
  }

  void positions(float* y, const Patchwork& p, int64_t filter, int64_t count) const {
    const int64_t width = extent(2, p.cols);
    if (p.cols % columns == 0) {  // no tile leaves its row
      for (int64_t r = 0; r < p.rows; ++r) {
        for (int64_t c = 0; c < p.cols; c += columns) {
          float* const to = y + (filter * s.out[1] + p.row + r) * s.out[2] + p.col + c;
          tiles(filter, count, r * width + c, to, s.out_positions());
        }
      }
      return;
    }
    const int64_t places = (p.rows - 1) * width + p.cols;
    for (int64_t at = 0; at < places; at += columns) {
      tiles(filter, count, at, tile, columns);
      keep(y, p, filter, count, at);
    }
  }

  // The filters of a range, all of one group of channels, for a part of a sample.
  void run(int64_t sample, LaneRange filters, const Patchwork& p) const {
    const int64_t group = filters.begin / (s.filters / s.groups);
    fill_plane(a->x.f32_row(sample) + group * channels * s.in_positions(), p);
    for (int64_t f = filters.begin; f < filters.end;) {
      const int64_t left = filters.end - f, rest = 16 - f % 16;
      const int64_t count = columns == kWideColumns ? 1 : left < rest ? left : rest;
      positions(a->y.f32_row(sample), p, f, count);
      f += count;
    }
  }
};

// What lanes share: filters where cutting them is more even than cutting outputs, and there are
// enough of them to be worth a plane in each lane.
inline bool share_filters(const ConvShape& s, int64_t outputs, const Lane& lane) {
  constexpr int64_t kWorth = 32;
  const int64_t n = lane.count, pieces = s.filters / 8;
  if (s.groups != 1 || n == 1 || s.filters < kWorth * n) return false;
  const int64_t by_outputs = (outputs + n - 1) / n * n * pieces;
  return (pieces + n - 1) / n * n * outputs < by_outputs;
}

// A product of each value by itself is the same along one axis, where rows have no ends.
inline ConvShape flattened(ConvShape s) {
  for (int a = 1; a < 3; ++a) {
    if (s.kernel[a] != 1 || s.stride[a] != 1 || s.pad[a] != 0 || s.in[a] != s.out[a]) return s;
  }
  s.in[2] *= s.in[1], s.out[2] *= s.out[1];
  s.in[1] = s.out[1] = 1;
  return s;
}

// Bands of rows, or of columns where there is one row, that fit the scratch. False when none does.
inline bool conv_by_planes(const ConvArgs& a, const ConvShape& shape, const R16& w,
                           const Lane& lane) {
  if (w.dtype != DType::f32 || shape.in[0] != 1 || shape.out[0] != 1 || shape.kernel[0] != 1 ||
      w.cols > kPlaneDepth)
    return false;
  const ConvShape s = flattened(shape);
  const int64_t filters = s.filters / s.groups;
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  const PlaneConv conv{&a,
                       s,
                       w,
                       s.channels / s.groups,
                       filters == 1 ? kWideColumns : kPlaneColumns,
                       reinterpret_cast<int32_t*>(scratch),
                       scratch + kPlaneDepth,
                       scratch + kPlaneDepth + kTileFloats};
  const bool by_row = s.out[1] > 1;
  const int64_t whole = by_row ? s.out[1] : s.out[2];
  const auto fits = [&](int64_t n) {
    return (by_row ? conv.floats(n, s.out[2]) : conv.floats(1, n)) <= kPlaneFloats;
  };
  if (!fits(1)) return false;
  // Whole tiles of columns, where there are several.
  const int64_t grain = by_row || !fits(conv.columns) ? 1 : conv.columns;
  const int64_t units = (whole + grain - 1) / grain;
  const bool by_filter = share_filters(s, a.x.rows() * units, lane);
  const LaneRange mine = by_filter ? lane.range(s.filters, 8) : LaneRange{0, 0};
  const LaneRange work =
      by_filter ? LaneRange{0, a.x.rows() * units} : lane.range(a.x.rows() * s.groups * units);
  int64_t filled = -1;
  for (int64_t t = work.begin; t < work.end && (!by_filter || mine.begin < mine.end);) {
    const int64_t at = t % units, piece = t / units;
    int64_t n = work.end - t < units - at ? work.end - t : units - at;
    while (!fits(n * grain)) n = (n + 1) / 2;
    const int64_t first = at * grain;
    const int64_t run = whole - first < n * grain ? whole - first : n * grain;
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

// Where there is one output, which sees all of its sample, a product of matrices.
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
