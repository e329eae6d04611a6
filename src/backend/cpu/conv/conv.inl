// conv: each output is one sum under rule 2 over its patch, padding zeros included. Convolutions
// over one or two axes run by planes (conv_planes.inl, conv_depth.inl). Others are products with
// panels of patches.

// Does each output see exactly the one input of this axis? With padding it sees zeros instead.
inline bool axis_unused(const ConvShape& s, int axis) {
  return s.in[axis] == 1 && s.out[axis] == 1 && s.kernel[axis] == 1 && s.pad[axis] == 0;
}

// The same convolution with its used axes last, so that the contiguous axis is the last one.
inline ConvShape axes_last(ConvShape s) {
  for (int i = 0; i < 2; ++i) {
    if (!axis_unused(s, 2)) break;
    for (int a = 2; a > 0; --a) {
      s.in[a] = s.in[a - 1], s.out[a] = s.out[a - 1], s.kernel[a] = s.kernel[a - 1];
      s.stride[a] = s.stride[a - 1], s.pad[a] = s.pad[a - 1], s.dilation[a] = s.dilation[a - 1];
    }
    s.in[0] = s.out[0] = s.kernel[0] = s.stride[0] = s.dilation[0] = 1;
    s.pad[0] = 0;
  }
  return s;
}

// to[j] = from[j] for each j of [begin, end) that is in [0, n), and 0 elsewhere. [begin, end) may
// exceed [0, n).
LOOM_INLINE void copy_between(float* to, const float* from, int64_t begin, int64_t end, int64_t n) {
  begin = begin < 0 ? 0 : begin < n ? begin : n;
  end = end < begin ? begin : end < n ? end : n;
  for (int64_t j = 0; j < begin; ++j) to[j] = 0.0f;
  for (int64_t j = begin; j < end; j += 16) store16_n(to + j, load16_n(from + j, end - j), end - j);
  for (int64_t j = end; j < n; j += 16) store16_n(to + j, set16(0.0f), n - j);
}

// The values of one channel that tap `tap` of outputs [o, o + count) reads.
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

// Bias and activation of complete sums.
__attribute__((noinline)) V16 finish16(const ConvArgs& a, V16 v, const V16& bias) {
  if (!a.bias.empty()) v = add16(v, bias);
  if (a.activation == Activation::relu) {
    LOOM_EACH(k) v.v[k] = v.v[k] > 0.0f ? v.v[k] : Vf{};
  } else if (a.activation != Activation::linear) {
    activate16(a.activation, v);
  }
  return v;
}
// Bias and activation of one filter.
inline void finish_filter(const ConvArgs& a, int64_t filter, float* y, int64_t n) {
  if (a.bias.empty() && a.activation == Activation::linear) return;
  const V16 bias = set16(a.bias.empty() ? 0.0f : a.bias.f32()[filter]);
  for (int64_t i = 0; i < n; i += 16)
    store16_n(y + i, finish16(a, load16_n(y + i, n - i), bias), n - i);
}

// Weights of filters as floats, [G][k][16]. Holds the last G requested groups if the packed weights
// cannot be read in place.
struct DecodedGroups {
  const R16* w;
  const std::byte* data;
  float* floats;  // room for G * 16 w.cols
  int64_t most;   // G
  int64_t first = -1;

  int64_t stride() const { return w->dtype == DType::f32 ? w->group_bytes / 4 : w->cols * 16; }
  // The first column is that of `filter`.
  const float* of(int64_t filter) {
    const int64_t group = filter / 16;
    if (w->dtype == DType::f32)
      return reinterpret_cast<const float*>(data + group * w->group_bytes) + filter % 16;
    if (first < 0 || group / most != first / most) decode(group / most * most);
    return floats + group % most * stride() + filter % 16;
  }
  void decode(int64_t from) {
    first = from;
    for (int64_t g = 0; g < most && (first + g) * 16 < w->rows; ++g) {
      for (int64_t k = 0; k < w->cols; k += kChunk) {
        decode_chunk(*w, data, first + g, k, w->cols - k < kChunk ? w->cols - k : kChunk,
                     floats + g * stride() + k * 16);
      }
    }
  }
};

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

// Columns of a tile: positions, or filters if filters are in the lanes.
constexpr int64_t kPlaneColumns = kFloatTileGroups * 16;

#include "backend/cpu/conv/conv_lanes.inl"
//
#include "backend/cpu/conv/conv_planes.inl"
//
#include "backend/cpu/conv/conv_depth.inl"

inline void conv(const ConvArgs& a, const Lane& lane) {
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  if (dtype_info(w.dtype).compute == ComputeType::f64 || w.cols == 0)
    return reference_ops().conv(a, lane);
  const ConvShape s = axes_last(a.shape);
  if (conv_by_matmul(a, s, w, lane) || conv_by_depth(a, s, w, lane) ||
      conv_by_planes(a, s, w, lane))
    return;
  conv_by_patches(a, s, w, lane);
}
