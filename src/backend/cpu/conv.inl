// conv: each output is one sum under rule 2 over its patch, zeros of the padding included. With
// stride 1 a lane copies its part of a sample into a plane with the padding around it; sixteen
// outputs in a row then see, for each k of the patch, sixteen values in a row of the plane, and the
// tile walks a table of offsets. Outputs between the rows of the plane are computed and dropped.
// Other convolutions are products with panels of patches.

// The same convolution with the axes it uses last, so that the last one is the one that runs.
inline ConvShape axes_last(ConvShape s) {
  for (int i = 0; i < 2; ++i) {
    if (s.in[2] != 1 || s.out[2] != 1 || s.kernel[2] != 1 || s.pad[2] != 0) break;
    for (int a = 2; a > 0; --a) {
      s.in[a] = s.in[a - 1], s.out[a] = s.out[a - 1], s.kernel[a] = s.kernel[a - 1];
      s.stride[a] = s.stride[a - 1], s.pad[a] = s.pad[a - 1], s.dilation[a] = s.dilation[a - 1];
    }
    s.in[0] = s.out[0] = s.kernel[0] = s.stride[0] = s.dilation[0] = 1;
    s.pad[0] = 0;
  }
  return s;
}

// to[j] = from[j] for j in [begin, end) of [0, n), which may reach beyond it, and 0 elsewhere.
LOOM_INLINE void copy_between(float* to, const float* from, int64_t begin, int64_t end, int64_t n) {
  begin = begin < 0 ? 0 : begin < n ? begin : n;
  end = end < begin ? begin : end < n ? end : n;
  for (int64_t j = 0; j < begin; ++j) to[j] = 0.0f;
  for (int64_t j = begin; j < end; j += 16) store16_n(to + j, load16_n(from + j, end - j), end - j);
  for (int64_t j = end; j < n; j += 16) store16_n(to + j, set16(0.0f), n - j);
}

// What tap `tap` of outputs [o, o + count) sees of one channel.
inline void fill_patch(const ConvShape& s, const float* channel, int64_t tap, int64_t o,
                       int64_t count, float* to) {
  const int64_t k2 = tap % s.kernel[2], k1 = tap / s.kernel[2] % s.kernel[1];
  const int64_t k0 = tap / (s.kernel[2] * s.kernel[1]);
  while (count > 0) {
    const int64_t o2 = o % s.out[2], o1 = o / s.out[2] % s.out[1], o0 = o / (s.out[2] * s.out[1]);
    const int64_t run = s.out[2] - o2 < count ? s.out[2] - o2 : count;
    const int64_t i0 = o0 * s.stride[0] + k0 * s.dilation[0] - s.pad[0];
    const int64_t i1 = o1 * s.stride[1] + k1 * s.dilation[1] - s.pad[1];
    const bool inside = i0 >= 0 && i0 < s.in[0] && i1 >= 0 && i1 < s.in[1];
    const float* row = inside ? channel + (i0 * s.in[1] + i1) * s.in[2] : channel;
    const int64_t i2 = o2 * s.stride[2] + k2 * s.dilation[2] - s.pad[2];
    if (!inside) {
      copy_between(to, nullptr, 0, 0, run);
    } else if (s.stride[2] == 1) {
      copy_between(to, row + i2, -i2, s.in[2] - i2, run);
    } else {
      for (int64_t j = 0, at = i2; j < run; ++j, at += s.stride[2])
        to[j] = at >= 0 && at < s.in[2] ? row[at] : 0.0f;
    }
    to += run, o += run, count -= run;
  }
}

// ---- any stride: products with panels of patches ----

struct PatchPanels {
  const ConvShape* s;
  const float* x;  // the channels of the group
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    const int64_t o = group * 16, left = s->out_positions() - o;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t channel = (first + k) / s->taps(), tap = (first + k) % s->taps();
      if (left < 16) store16(to + k * 16, set16(0.0f));
      fill_patch(*s, x + channel * s->in_positions(), tap, o, left < 16 ? left : 16, to + k * 16);
    }
  }
};

// Rows of a packed matrix from `first_row`.
struct PackedRows {
  using Form = CopiedRows;
  const R16* w;
  const std::byte* data;
  int64_t first_row;
  LOOM_INLINE LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
                            float* copy) const {
    for (int64_t r = 0; r < rows; ++r)
      r16_decode(*w, data, first_row + row + r, first, n, copy + r * kCopyStride);
    return {copy, 0};
  }
};

// Bias and activation of complete sums of one filter.
inline void finish_filter(const ConvArgs& a, int64_t filter, float* y, int64_t n) {
  if (a.bias.empty() && a.activation == Activation::linear) return;
  const float bias = a.bias.empty() ? 0.0f : a.bias.f32()[filter];
  for (int64_t i = 0; i < n; i += 16) {
    V16 v = load16_n(y + i, n - i);
    if (!a.bias.empty()) LOOM_EACH(k) v.v[k] = v.v[k] + bias;
    if (a.activation == Activation::relu) {
      LOOM_EACH(k) v.v[k] = v.v[k] > 0.0f ? v.v[k] : Vf{};
    } else if (a.activation != Activation::linear) {
      activate16(a.activation, v);
    }
    store16_n(y + i, v, n - i);
  }
}

inline void conv_by_patches(const ConvArgs& a, const ConvShape& s, const R16& w, const Lane& lane) {
  const int64_t filters = s.filters / s.groups, channels = s.channels / s.groups;
  const int64_t outputs = s.out_positions();
  const LaneRange work = lane.range(a.x.rows() * s.filters);
  for (int64_t t = work.begin; t < work.end;) {
    const int64_t b = t / s.filters, f = t % s.filters, group = f / filters;
    const int64_t left = work.end - t, rest = (group + 1) * filters - f;
    const int64_t rows = left < rest ? left : rest;
    float* const y = a.y.f32_row(b) + f * outputs;
    const PatchPanels right{&s, a.x.f32_row(b) + group * channels * s.in_positions()};
    const Product<PackedRows, PatchPanels> product{{&w, a.w.data, f},
                                                   right,
                                                   w.cols,
                                                   outputs,
                                                   y,
                                                   outputs,
                                                   false,
                                                   reinterpret_cast<float*>(lane.scratch)};
    product.run({0, rows}, {0, (outputs + 15) / 16});
    for (int64_t r = 0; r < rows; ++r) finish_filter(a, f + r, y + r * outputs, outputs);
    t += rows;
  }
}

// ---- stride 1: tiles over a padded plane ----

struct PlaneTile {
  const float* w;         // the first filter of the tile: [k][16]
  const float* plane;     // the first position
  const int32_t* offset;  // of each k
  int64_t depth;
  float* y;
  int64_t y_stride;
};
constexpr int64_t kPlaneColumns = kFloatTileGroups * 16;
constexpr int64_t kPlaneDepth = 4096;  // k of a patch
constexpr int64_t kPlaneFloats = kMatmulScratch / 4 - kPlaneDepth - 16 * kPlaneColumns;

template <int R>
void plane_tile(const PlaneTile& t) {
  constexpr int G = kFloatTileGroups;
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
  return {{plane_tile<R + 1>...}};
}
constexpr PlaneTiles kPlaneTiles =
    plane_tiles(std::make_integer_sequence<int, LaneRows::kHeight>{});

// Outputs [row, row + rows) x [col, col + cols) of a sample, over axes 1 and 2.
struct Patchwork {
  int64_t row, rows, col, cols;
};

// One lane's share of a convolution with stride 1 over at most two axes, groups 1.
struct PlaneConv {
  const ConvArgs* a;
  ConvShape s;
  R16 w;
  int32_t* offset;
  float *tile, *plane;

  int64_t reach(int axis) const { return (s.kernel[axis] - 1) * s.dilation[axis]; }
  int64_t floats(int64_t rows, int64_t cols) const {
    return s.channels * (rows + reach(1)) * (cols + reach(2)) + 2 * kPlaneColumns;
  }

  void fill_offsets(const Patchwork& p) const {
    const int64_t width = p.cols + reach(2), height = p.rows + reach(1);
    int32_t* to = offset;
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t i = 0; i < s.kernel[1]; ++i) {
        for (int64_t j = 0; j < s.kernel[2]; ++j) {
          *to++ =
              static_cast<int32_t>((c * height + i * s.dilation[1]) * width + j * s.dilation[2]);
        }
      }
    }
  }

  void fill_plane(const float* x, const Patchwork& p) const {
    const int64_t width = p.cols + reach(2), height = p.rows + reach(1);
    const int64_t left = p.col - s.pad[2];  // the input column of the first of the plane
    float* to = plane;
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t r = 0; r < height; ++r, to += width) {
        const int64_t i = p.row + r - s.pad[1];
        const bool inside = i >= 0 && i < s.in[1];
        const float* from = x + (c * s.in[1] + (inside ? i : 0)) * s.in[2] + left;
        copy_between(to, from, -left, inside ? s.in[2] - left : 0, width);
      }
    }
    for (int64_t j = 0; j < 2 * kPlaneColumns; ++j) to[j] = 0.0f;
  }

  // What of a tile of `rows` filters lies in rows of the output, from position `at` of the plane.
  void keep(float* y, const Patchwork& p, int64_t filter, int64_t rows, int64_t at) const {
    const int64_t width = p.cols + reach(2);
    for (int64_t done = 0; done < kPlaneColumns;) {
      const int64_t row = (at + done) / width, col = (at + done) % width;
      const int64_t run = width - col < kPlaneColumns - done ? width - col : kPlaneColumns - done;
      const int64_t n = p.cols - col < run ? p.cols - col : run;
      for (int64_t r = 0; r < rows && row < p.rows && n > 0; ++r) {
        float* const to = y + ((filter + r) * s.out[1] + p.row + row) * s.out[2] + p.col + col;
        for (int64_t i = 0; i < n; i += 16)
          store16_n(to + i, load16_n(tile + r * kPlaneColumns + done + i, n - i), n - i);
      }
      done += run;
    }
  }

  // A tile of up to sixteen filters from position `at` of the plane.
  void tiles(int64_t group, int64_t at, float* to, int64_t stride) const {
    const float* weights = reinterpret_cast<const float*>(a->w.data + group * w.group_bytes);
    const int64_t left = s.filters - group * 16, count = left < 16 ? left : 16;
    const int64_t parts = (count + LaneRows::kHeight - 1) / LaneRows::kHeight;
    for (int64_t i = 0; i < parts; ++i) {
      const LaneRange part = lane_range(count, 1, static_cast<int>(i), static_cast<int>(parts));
      const PlaneTile t{weights + part.begin,     plane + at, offset, w.cols,
                        to + part.begin * stride, stride};
      kPlaneTiles.of[part.end - part.begin - 1](t);
    }
    for (int64_t f = 0; f < count; ++f)
      finish_filter(*a, group * 16 + f, to + f * stride, kPlaneColumns);
  }

  void filters(float* y, const Patchwork& p, int64_t group) const {
    const int64_t width = p.cols + reach(2);
    if (p.cols % kPlaneColumns == 0) {  // no tile leaves its row
      for (int64_t r = 0; r < p.rows; ++r) {
        for (int64_t c = 0; c < p.cols; c += kPlaneColumns) {
          float* const to = y + (group * 16 * s.out[1] + p.row + r) * s.out[2] + p.col + c;
          tiles(group, r * width + c, to, s.out_positions());
        }
      }
      return;
    }
    const int64_t left = s.filters - group * 16, count = left < 16 ? left : 16;
    const int64_t positions = (p.rows - 1) * width + p.cols;
    for (int64_t at = 0; at < positions; at += kPlaneColumns) {
      tiles(group, at, tile, kPlaneColumns);
      keep(y, p, group * 16, count, at);
    }
  }

  void run(int64_t sample, const Patchwork& p) const {
    fill_offsets(p);
    fill_plane(a->x.f32_row(sample), p);
    for (int64_t g = 0; g < w.groups; ++g) filters(a->y.f32_row(sample), p, g);
  }
};

// Bands of rows, or of columns where there is one row, that fit the scratch. False when none does.
inline bool conv_by_planes(const ConvArgs& a, const ConvShape& s, const R16& w, const Lane& lane) {
  if (s.groups != 1 || w.dtype != DType::f32 || s.in[0] != 1 || s.out[0] != 1 || w.cols == 0 ||
      s.kernel[0] != 1 || s.stride[1] != 1 || s.stride[2] != 1 || w.cols > kPlaneDepth)
    return false;
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  const PlaneConv conv{&a,
                       s,
                       w,
                       reinterpret_cast<int32_t*>(scratch),
                       scratch + kPlaneDepth,
                       scratch + kPlaneDepth + 16 * kPlaneColumns};
  const bool by_row = s.out[1] > 1;
  const int64_t whole = by_row ? s.out[1] : s.out[2];
  const auto fits = [&](int64_t n) {
    return (by_row ? conv.floats(n, s.out[2]) : conv.floats(1, n)) <= kPlaneFloats;
  };
  if (!fits(1)) return false;
  const LaneRange work = lane.range(a.x.rows() * whole);
  for (int64_t t = work.begin; t < work.end;) {
    const int64_t at = t % whole;
    int64_t n = work.end - t < whole - at ? work.end - t : whole - at;
    while (!fits(n)) n = (n + 1) / 2;
    conv.run(t / whole, by_row ? Patchwork{at, n, 0, s.out[2]} : Patchwork{0, 1, at, n});
    t += n;
  }
  return true;
}

inline void conv(const ConvArgs& a, const Lane& lane) {
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  if (dtype_info(w.dtype).compute == ComputeType::f64 || w.cols == 0)
    return reference_ops().conv(a, lane);
  const ConvShape s = axes_last(a.shape);
  if (!conv_by_planes(a, s, w, lane)) conv_by_patches(a, s, w, lane);
}
