// conv_dw: a product of dy with the patches of all samples and outputs. conv_dx takes a few
// channels at a time. It computes the gradients of all taps, which are products of the weights with
// dy. Then it adds them to the inputs, tap by tap, ascending.

// ---- conv_dw ----

// Rows of dy are filters; their k runs over the outputs of all samples.
struct FilterRows {
  using Form = CopiedRows;
  const Tensor* dy;
  int64_t outputs, first_filter;
  LOOM_INLINE LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
                            float* copy) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t done = 0; done < n;) {
        const int64_t b = (first + done) / outputs, o = (first + done) % outputs;
        const int64_t run = outputs - o < n - done ? outputs - o : n - done;
        std::memcpy(copy + r * kCopyStride + done,
                    dy->f32_row(b) + (first_filter + row + r) * outputs + o,
                    static_cast<size_t>(run) * 4);
        done += run;
      }
    }
    return {copy, 0};
  }
};

// Columns are positions of the patch.
struct PlacePanels {
  const ConvShape* s;
  const Tensor* x;
  int64_t first_channel;
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    const int64_t outputs = s->out_positions(), left = s->patch() - group * 16;
    const int64_t count = left < 16 ? left : 16;
    float seen[16 * kCopyStride];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t k = group * 16 + i;
      const int64_t channel = (first_channel + k / s->taps()) * s->in_positions();
      for (int64_t done = 0; done < n;) {
        const int64_t b = (first + done) / outputs, o = (first + done) % outputs;
        const int64_t run = outputs - o < n - done ? outputs - o : n - done;
        fill_patch(*s, x->f32_row(b) + channel, k % s->taps(), o, run,
                   seen + i * kCopyStride + done);
        done += run;
      }
    }
    rows_to_lanes(seen, kCopyStride, count, n, to);
  }
};

inline void conv_dw(const ConvDwArgs& a, const Lane& lane) {
  const ConvShape s = axes_last(a.shape);
  const int64_t outputs = s.out_positions(), depth = a.x.rows() * outputs;
  if (depth == 0) return reference_ops().conv_dw(a, lane);
  const int64_t filters = s.filters / s.groups;
  const int64_t groups = (s.patch() + 15) / 16;
  // Panels cost more than rows, so lanes share panels if there are enough of them.
  const bool by_rows = groups < 2 * lane.count;
  const LaneRange rows = by_rows ? lane.range(s.filters) : LaneRange{0, s.filters};
  const LaneRange columns = by_rows ? LaneRange{0, groups} : lane.range(groups, kFloatTileGroups);
  for (int64_t f = rows.begin; f < rows.end;) {
    const int64_t group = f / filters;
    const int64_t end = (group + 1) * filters < rows.end ? (group + 1) * filters : rows.end;
    const Product<FilterRows, PlacePanels> product{{&a.dy, outputs, f},
                                                   {&s, &a.x, group * (s.channels / s.groups)},
                                                   depth,
                                                   s.patch(),
                                                   a.dw.f32_row(f),
                                                   a.dw.row_stride,
                                                   a.accumulate,
                                                   reinterpret_cast<float*>(lane.scratch)};
    product.run({0, end - f}, columns);
    f = end;
  }
}

// ---- conv_dx ----

// Columns of a packed matrix as rows, over packed rows [first_row, ...).
struct PackedColumns {
  using Form = CopiedRows;
  const R16* w;
  const std::byte* data;
  int64_t first_row, first_column;
  LOOM_INLINE LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
                            float* copy) const {
    const int64_t begin = first_row + first;
    for (int64_t at = begin; at < begin + n;) {
      const int64_t lane = at % 16;
      const int64_t run = 16 - lane < begin + n - at ? 16 - lane : begin + n - at;
      const float* codes =
          reinterpret_cast<const float*>(data + at / 16 * w->group_bytes + w->codes) +
          (first_column + row) * 16;
      for (int64_t r = 0; r < rows; ++r) {
        float lanes[16];
        const float* from = lanes;
        if (w->dtype == DType::f32) {
          from = codes + r * 16;
        } else {
          decode_chunk(*w, data, at / 16, first_column + row + r, 1, lanes);
        }
        float* const to = copy + r * kCopyStride + (at - begin);
        store16_n(to, load16_n(from + lane, run), run);
      }
      at += run;
    }
    return {copy, 0};
  }
};

// Floats of scratch beside what a product of up to kHeldRows rows uses.
constexpr int64_t kTapFloats = kMatmulScratch / 4 - kPanelFloats - kHeldRows * kCopyStride;

// One lane's share of a conv_dx: some channels of a group at a time, outputs in bands of their
// slowest axis. Bands run downward, so that the taps of one input still ascend.
struct ConvDx {
  const ConvDxArgs* a;
  ConvShape s;
  R16 w;
  int64_t step, band;  // outputs of one index on the slowest axis, and indices a band
  float *scratch, *taps, *sums;

  // The gradients of tap `tap` for outputs [o, o + count), added to a channel's inputs.
  void add_tap(const float* gradient, int64_t tap, int64_t o, int64_t count, float* dx) const {
    const int64_t k2 = tap % s.kernel[2], k1 = tap / s.kernel[2] % s.kernel[1];
    const int64_t k0 = tap / (s.kernel[2] * s.kernel[1]);
    while (count > 0) {
      const int64_t o2 = o % s.out[2], o1 = o / s.out[2] % s.out[1];
      const int64_t o0 = o / (s.out[2] * s.out[1]);
      const int64_t run = s.out[2] - o2 < count ? s.out[2] - o2 : count;
      const int64_t i0 = o0 * s.stride[0] + k0 * s.dilation[0] - s.pad[0];
      const int64_t i1 = o1 * s.stride[1] + k1 * s.dilation[1] - s.pad[1];
      const int64_t left = k2 * s.dilation[2] - s.pad[2];
      if (i0 >= 0 && i0 < s.in[0] && i1 >= 0 && i1 < s.in[1]) {
        float* const row = dx + (i0 * s.in[1] + i1) * s.in[2];
        add_run(gradient, row, o2, run, left);
      }
      gradient += run, o += run, count -= run;
    }
  }
  void add_run(const float* gradient, float* row, int64_t o2, int64_t run, int64_t left) const {
    const int64_t stride = s.stride[2];
    int64_t begin = 0, end = run;
    while (begin < end && (o2 + begin) * stride + left < 0) ++begin;
    while (end > begin && (o2 + end - 1) * stride + left >= s.in[2]) --end;
    if (stride != 1) {
      for (int64_t j = begin; j < end; ++j)
        row[(o2 + j) * stride + left] = row[(o2 + j) * stride + left] + gradient[j];
      return;
    }
    float* const to = row + o2 + left;
    for (int64_t j = begin; j < end; j += 16)
      store16_n(to + j, add16(load16_n(to + j, end - j), load16_n(gradient + j, end - j)), end - j);
  }

  void run(int64_t b, int64_t channel, int64_t count) const {
    const int64_t per_group = s.channels / s.groups, group = channel / per_group;
    const int64_t filters = s.filters / s.groups, in = s.in_positions();
    const int64_t outputs = s.out_positions(), num_positions = outputs / step;
    float* const dx = a->dx.f32_row(b) + channel * in;
    float* const to = a->accumulate ? sums : dx;
    std::memset(to, 0, static_cast<size_t>(count * in) * 4);
    for (int64_t end = num_positions; end > 0;) {
      const int64_t begin = end > band ? end - band : 0;
      const int64_t o = begin * step, n = (end - begin) * step;
      const Product<PackedColumns, PlainPanels> product{
          {&w, a->w.data, group * filters, (channel - group * per_group) * s.taps()},
          {a->dy.f32_row(b) + group * filters * outputs + o, outputs, n},
          filters,
          n,
          taps,
          n,
          false,
          scratch};
      product.run({0, count * s.taps()}, {0, (n + 15) / 16});
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t tap = 0; tap < s.taps(); ++tap)
          add_tap(taps + (c * s.taps() + tap) * n, tap, o, n, to + c * in);
      }
      end = begin;
    }
    for (int64_t c = 0; c < count; ++c) finish(channel + c, to + c * in, dx + c * in, in);
  }

  void finish(int64_t channel, const float* sum, float* dx, int64_t n) const {
    const bool plain = a->bias.empty() && a->activation == Activation::linear;
    if (plain && !a->accumulate) return;
    const float bias = a->bias.empty() ? 0.0f : a->bias.f32()[channel];
    for (int64_t i = 0; i < n; i += 16) {
      V16 v = load16_n(sum + i, n - i);
      if (!a->bias.empty()) LOOM_EACH(k) v.v[k] = v.v[k] + bias;
      if (a->activation != Activation::linear) activate16(a->activation, v);
      if (a->accumulate) v = add16(load16_n(dx + i, n - i), v);
      store16_n(dx + i, v, n - i);
    }
  }
};

inline void conv_dx(const ConvDxArgs& a, const Lane& lane) {
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  const ConvShape s = axes_last(a.shape);
  const int axis = s.out[0] > 1 ? 0 : s.out[1] > 1 ? 1 : 2;
  const int64_t step = s.out[axis] == 0 ? 0 : s.out_positions() / s.out[axis];
  const int64_t held = a.accumulate ? s.in_positions() : 0;
  const int64_t filters = s.filters / s.groups, channels = s.channels / s.groups;
  if (dtype_info(w.dtype).compute == ComputeType::f64 || step == 0 || filters == 0 ||
      s.taps() > kHeldRows || held + s.taps() * step > kTapFloats)
    return reference_ops().conv_dx(a, lane);
  const int64_t fits = (kTapFloats - held) / (s.taps() * step);
  const int64_t band = fits < s.out[axis] ? fits : s.out[axis];
  int64_t count = kTapFloats / (held + s.taps() * step * band);
  count = count < kHeldRows / s.taps() ? count : kHeldRows / s.taps();
  auto* const scratch = reinterpret_cast<float*>(lane.scratch);
  float* const taps = scratch + kPanelFloats + kHeldRows * kCopyStride;
  const ConvDx conv{&a, s, w, step, band, scratch, taps, taps + count * s.taps() * step * band};
  const LaneRange work = lane.range(a.dx.rows() * s.channels);
  for (int64_t t = work.begin; t < work.end;) {
    const int64_t c = t % s.channels;
    const int64_t rest = channels - c % channels, left = work.end - t;
    int64_t n = left < rest ? left : rest;
    n = n < count ? n : count;
    conv.run(t / s.channels, c, n);
    t += n;
  }
}
