// Convolutions. f32 uses the kernels of networks; constant weights are packed once. double and
// integers use plain loops. See windows.hpp.
#include <algorithm>

#include "onnx/interpreter/neural/windows.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {

Result<Dims> per_axis(const Call& c, std::string_view name, int axes, int64_t otherwise,
                      int64_t least) {
  constexpr int64_t kMax = int64_t{1} << 24;
  Dims list = c.list(name);
  if (list.empty()) list.assign(static_cast<size_t>(axes), otherwise);
  if (list.size() != static_cast<size_t>(axes))
    return c.bad(cat("'", name, "' must have a number per axis"));
  for (const int64_t v : list) {
    if (v < least || v > kMax) return c.bad(cat("'", name, "' holds ", v));
  }
  return list;
}

Dims Windows::out_dims(int64_t batch, int64_t channels) const {
  Dims dims{batch, channels};
  for (int a = 0; a < axes; ++a) dims.push_back(shape.out[slot(a)]);
  return dims;
}

Result<Windows> windows_of(const Call& c, const Dims& x, const Dims& kernel, bool ceil) {
  Windows w;
  w.axes = static_cast<int>(x.size()) - 2;
  if (w.axes < 1) return c.bad("takes [N, C, ...]");
  if (w.axes > 3) return c.not_done(cat(w.axes, " spatial axes"));
  if (static_cast<int>(kernel.size()) != w.axes) return c.bad("a kernel of another rank");
  LOOM_ASSIGN(const Dims strides, per_axis(c, "strides", w.axes, 1, 1));
  LOOM_ASSIGN(const Dims dilations, per_axis(c, "dilations", w.axes, 1, 1));
  LOOM_ASSIGN(const Dims pads, per_axis(c, "pads", 2 * w.axes, 0, 0));
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!same && automatic != "NOTSET" && automatic != "VALID") return c.bad("unknown auto_pad");
  for (int a = 0; a < w.axes; ++a) {
    const auto k = static_cast<size_t>(a), s = static_cast<size_t>(w.slot(a));
    const int64_t in = x[k + 2], reach = (kernel[k] - 1) * dilations[k] + 1;
    if (kernel[k] < 1 || kernel[k] > (1 << 24)) return c.bad("a kernel without taps");
    int64_t before = automatic == "VALID" ? 0 : pads[k];
    int64_t behind = automatic == "VALID" ? 0 : pads[k + static_cast<size_t>(w.axes)];
    int64_t out = 0;
    if (same) {
      out = (in + strides[k] - 1) / strides[k];
      const int64_t all = std::max<int64_t>(0, (out - 1) * strides[k] + reach - in);
      before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      behind = all - before;
    } else {
      const int64_t room = in + before + behind - reach;
      if (room < 0) return c.bad("a kernel larger than its input");
      out = (room + (ceil ? strides[k] - 1 : 0)) / strides[k] + 1;
      if (ceil && (out - 1) * strides[k] >= in + before) --out;
    }
    w.shape.in[s] = in, w.shape.out[s] = out, w.shape.kernel[s] = kernel[k];
    w.shape.stride[s] = strides[k], w.shape.pad[s] = before, w.shape.dilation[s] = dilations[k];
    w.pad_end[s] = behind;
  }
  return w;
}

namespace {

struct ConvInputs {
  Windows windows;
  Dims y;
};
Result<ConvInputs> conv_inputs(const Call& c, const Dims& x, const Dims& w) {
  if (w.size() != x.size() || x.size() < 3) return c.bad("weights of another rank");
  ConvInputs in;
  LOOM_ASSIGN(in.windows, windows_of(c, x, Dims(w.begin() + 2, w.end())));
  ConvShape& s = in.windows.shape;
  s.groups = c.integer("group", 1);
  s.channels = x[1], s.filters = w[0];
  if (s.groups < 1 || s.channels % s.groups != 0 || s.filters % s.groups != 0 ||
      w[1] != s.channels / s.groups)
    return c.bad("channels, groups and weights that do not fit");
  const Dims named = c.list("kernel_shape");
  if (!named.empty() && named != Dims(w.begin() + 2, w.end()))
    return c.bad("kernel_shape is not that of the weights");
  in.y = in.windows.out_dims(x[0], s.filters);
  return in;
}

struct ConvWeights : Prepared {
  std::shared_ptr<const PackedMatrix> packed;
  Activation activation = Activation::linear;
};

Result<std::shared_ptr<const Prepared>> prepare_conv(const Call& c) {
  if (!c.has(1) || c.value(1).type != OnnxType::f32 || c.value(1).rank() < 3 ||
      c.value(1).count() == 0)
    return {nullptr};
  const Value& w = c.value(1);
  auto out = std::make_shared<ConvWeights>();
  LOOM_ASSIGN(out->packed, pack_rows(c, w.data<float>(), w.dims[0], w.count() / w.dims[0]));
  return {std::move(out)};
}

Result<Tensor> packed_weights(const Call& c, const Value& w, std::shared_ptr<PackedMatrix>& made) {
  if (c.prepared != nullptr) return static_cast<const ConvWeights&>(*c.prepared).packed->w;
  LOOM_ASSIGN(made, pack_rows(c, w.data<float>(), w.dims[0], w.count() / w.dims[0]));
  return made->w;
}

Tensor samples(const Value& v, int64_t batch) {
  return f32_matrix(const_cast<float*>(v.data<float>()), batch, v.count() / batch);
}

Status add_channels(const Call& c, Value& y, const Value& bias) {
  if (bias.count() != y.dims[1]) return c.bad("a bias per filter is needed");
  const int64_t inner = product(y.dims, 2, y.rank());
  with_real(y.type, [&]<class T>(T) {
    for (int64_t r = 0, rows = y.dims[0] * y.dims[1]; r < rows; ++r) {
      const T b = bias.data<T>()[r % y.dims[1]];
      for (int64_t i = 0; i < inner; ++i) y.data<T>()[r * inner + i] += b;
    }
  });
  return {};
}

// The patch of output `o` in an image [C, in]; zeros outside.
void copy_patch(const ConvShape& s, const float* image, int64_t o, float* to) {
  const int64_t first[3] = {o / (s.out[1] * s.out[2]) * s.stride[0] - s.pad[0],
                            o / s.out[2] % s.out[1] * s.stride[1] - s.pad[1],
                            o % s.out[2] * s.stride[2] - s.pad[2]};
  for (int64_t c = 0; c < s.channels; ++c, image += s.in_positions()) {
    for (int64_t i = 0; i < s.kernel[0]; ++i) {
      for (int64_t j = 0; j < s.kernel[1]; ++j, to += s.kernel[2]) {
        const int64_t z = first[0] + i * s.dilation[0], y = first[1] + j * s.dilation[1];
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const float* row = image + (inside ? (z * s.in[1] + y) * s.in[2] : 0);
        for (int64_t k = 0; k < s.kernel[2]; ++k) {
          const int64_t x = first[2] + k * s.dilation[2];
          to[k] = inside && x >= 0 && x < s.in[2] ? row[x] : 0.0F;
        }
      }
    }
  }
}

// A convolution with few outputs as a product of patches and filters: the same sums, and no tile of
// outputs that is mostly empty.
constexpr int64_t kSmallOutputs = 12;
Status conv_by_patches(const Call& c, const ConvArgs& conv, int64_t batch) {
  const ConvShape& s = conv.shape;
  const int64_t outputs = s.out_positions(), patch = s.patch(), rows = batch * outputs;
  LOOM_ASSIGN(Value patches, c.make(OnnxType::f32, {rows, patch}));
  LOOM_ASSIGN(Value made, c.make(OnnxType::f32, {rows, s.filters}));
  for (int64_t r = 0; r < rows; ++r)
    copy_patch(s, conv.x.f32_row(r / outputs), r % outputs, patches.data<float>() + r * patch);
  MatmulArgs m;
  m.x = f32_matrix(patches.data<float>(), rows, patch);
  m.w = conv.w;
  m.y = f32_matrix(made.data<float>(), rows, s.filters);
  m.bias = conv.bias;
  m.activation = conv.activation;
  LOOM_TRY(c.rt.recorder.matmul(m));
  LOOM_TRY(c.rt.recorder.flush());
  for (int64_t n = 0; n < batch; ++n) {
    const float* from = made.data<float>() + n * outputs * s.filters;
    float* to = conv.y.f32_row(n);
    for (int64_t f = 0; f < s.filters; ++f) {
      for (int64_t o = 0; o < outputs; ++o) to[f * outputs + o] = from[o * s.filters + f];
    }
  }
  return {};
}

Status conv(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value w, c.widened(1));
  LOOM_ASSIGN(const ConvInputs in, conv_inputs(c, x.dims, w.dims));
  LOOM_ASSIGN(Value y, c.make(x.type, in.y));
  Value bias;
  if (c.has(2)) {
    LOOM_ASSIGN(bias, c.as(2, x.type));
    if (bias.count() != w.dims[0]) return c.bad("a bias per filter is needed");
  }
  if (y.count() == 0 || w.count() == 0 || x.count() == 0) {
    fill_zero(y);
    return c.give_as(y, c.value(0).type);
  }
  if (x.type == OnnxType::f64) {
    convolve_plainly<double>(c, x.data<double>(), w.data<double>(), y.data<double>(), x.dims[0],
                             in.windows.shape);
    if (c.has(2)) LOOM_TRY(add_channels(c, y, bias));
    return c.give(std::move(y));
  }
  std::shared_ptr<PackedMatrix> made;
  LOOM_ASSIGN(const Tensor packed, packed_weights(c, w, made));
  ConvArgs args;
  args.x = samples(x, x.dims[0]);
  args.w = packed;
  args.y = samples(y, x.dims[0]);
  if (c.has(2)) args.bias = f32_vector(bias.data<float>(), bias.count());
  args.shape = in.windows.shape;
  if (c.prepared != nullptr)
    args.activation = static_cast<const ConvWeights&>(*c.prepared).activation;
  const int64_t outputs = args.shape.out_positions();
  if (args.shape.groups == 1 && outputs > 1 && outputs <= kSmallOutputs) {
    LOOM_TRY(conv_by_patches(c, args, x.dims[0]));
    return c.give_as(y, c.value(0).type);
  }
  LOOM_TRY(c.rt.recorder.conv(args));
  LOOM_TRY(c.rt.recorder.flush());
  return c.give_as(y, c.value(0).type);
}

// Geometry of a transposed convolution: that of the convolution whose gradient it is, which goes
// from y to x.
Result<Windows> transposed_windows(const Call& c, const Dims& x, const Dims& w) {
  Windows out;
  out.axes = static_cast<int>(x.size()) - 2;
  if (out.axes < 1 || w.size() != x.size()) return c.bad("takes [N, C, ...] and such weights");
  if (out.axes > 3) return c.not_done(cat(out.axes, " spatial axes"));
  LOOM_ASSIGN(const Dims strides, per_axis(c, "strides", out.axes, 1, 1));
  LOOM_ASSIGN(const Dims dilations, per_axis(c, "dilations", out.axes, 1, 1));
  LOOM_ASSIGN(const Dims pads, per_axis(c, "pads", 2 * out.axes, 0, -(1 << 24)));
  LOOM_ASSIGN(const Dims more, per_axis(c, "output_padding", out.axes, 0, 0));
  const Dims requested = c.list("output_shape");
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (int a = 0; a < out.axes; ++a) {
    const auto k = static_cast<size_t>(a), s = static_cast<size_t>(out.slot(a));
    const int64_t reach = (w[k + 2] - 1) * dilations[k] + 1;
    const int64_t full = (x[k + 2] - 1) * strides[k] + reach + more[k];
    int64_t before = pads[k];
    int64_t extent = full - before - pads[k + static_cast<size_t>(out.axes)];
    if (!requested.empty() || same) {
      if (!requested.empty() && requested.size() < static_cast<size_t>(out.axes))
        return c.bad("output_shape must have an extent per axis");
      extent = same && requested.empty()
                   ? x[k + 2] * strides[k]
                   : requested[requested.size() - static_cast<size_t>(out.axes) + k];
      const int64_t all = std::max<int64_t>(0, full - extent);
      before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    }
    if (extent < 1 || w[k + 2] < 1) return c.bad("no output is left");
    out.shape.in[s] = extent, out.shape.out[s] = x[k + 2], out.shape.kernel[s] = w[k + 2];
    out.shape.stride[s] = strides[k], out.shape.pad[s] = before;
    out.shape.dilation[s] = dilations[k];
  }
  return out;
}

// Every input value adds its window of weights, input channels ascending.
template <class T>
void spread_plainly(const T* x, const T* w, T* y, int64_t batch, const ConvShape& s) {
  const int64_t in = s.out_positions(), out = s.in_positions(), taps = s.taps();
  const int64_t per_group = s.channels / s.groups, filters = s.filters / s.groups;
  for (int64_t r = 0; r < batch * s.filters; ++r) {
    const int64_t f = r % s.filters;
    for (int64_t i = 0; i < in * per_group * taps; ++i) {
      const int64_t tap = i % taps, ch = i / taps % per_group, at = i / taps / per_group;
      const int64_t p[3] = {at / (s.out[1] * s.out[2]), at / s.out[2] % s.out[1], at % s.out[2]};
      const int64_t t[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                            tap % s.kernel[2]};
      int64_t offset = 0;
      bool inside = true;
      for (int a = 0; a < 3; ++a) {
        const int64_t o = p[a] * s.stride[a] + t[a] * s.dilation[a] - s.pad[a];
        inside = inside && o >= 0 && o < s.in[a];
        offset = offset * s.in[a] + o;
      }
      const int64_t channel = f / filters * per_group + ch;
      if (inside)
        y[(r / s.filters * s.channels + channel) * out + offset] +=
            x[r * in + at] * w[(f * per_group + ch) * taps + tap];
    }
  }
}

Status conv_transpose(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value w, c.widened(1));
  LOOM_ASSIGN(Windows win, transposed_windows(c, x.dims, w.dims));
  ConvShape& s = win.shape;
  s.groups = c.integer("group", 1);
  s.filters = x.dims[1];
  if (s.groups < 1 || s.filters % s.groups != 0 || w.dims[0] != s.filters || w.count() == 0 ||
      x.count() == 0)
    return c.bad("channels, groups and weights that do not fit");
  s.channels = w.dims[1] * s.groups;
  Dims dims{x.dims[0], s.channels};
  for (int a = 0; a < win.axes; ++a) dims.push_back(s.in[win.slot(a)]);
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  Value bias;
  if (c.has(2)) {
    LOOM_ASSIGN(bias, c.as(2, x.type));
    if (bias.count() != s.channels) return c.bad("a bias per filter is needed");
  }
  // Windows that begin inside of the output, which negative pads give, have no kernel.
  const bool plain = std::ranges::any_of(s.pad, [](int64_t p) { return p < 0; });
  if (x.type == OnnxType::f64 || plain) {
    fill_zero(y);
    with_real(x.type, [&]<class T>(T) {
      spread_plainly(x.data<T>(), w.data<T>(), y.data<T>(), x.dims[0], s);
    });
    if (c.has(2)) LOOM_TRY(add_channels(c, y, bias));
    return c.give_as(y, c.value(0).type);
  }
  std::shared_ptr<PackedMatrix> made;
  LOOM_ASSIGN(const Tensor packed, packed_weights(c, w, made));
  ConvDxArgs args;
  args.dy = samples(x, x.dims[0]);
  args.w = packed;
  args.dx = samples(y, x.dims[0]);
  if (c.has(2)) args.bias = f32_vector(bias.data<float>(), bias.count());
  args.shape = s;
  LOOM_TRY(c.rt.recorder.conv_dx(args));
  LOOM_TRY(c.rt.recorder.flush());
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kConvs[] = {
    {"", "Conv", conv, {}, "", Operator::none, prepare_conv},
    {"", "ConvTranspose", conv_transpose, {}, "", Operator::none, prepare_conv},
};

}  // namespace

std::shared_ptr<const Prepared> with_activation(const std::shared_ptr<const Prepared>& prepared,
                                                Activation activation) {
  const auto& have = static_cast<const ConvWeights&>(*prepared);
  if (have.activation != Activation::linear) return nullptr;
  auto out = std::make_shared<ConvWeights>(have);
  out->activation = activation;
  return out;
}

std::span<const Operator> conv_operators() {
  return kConvs;
}

}  // namespace loom::core::evaluate
