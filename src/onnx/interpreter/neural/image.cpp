// Pictures sampled at computed places: GridSample, AffineGrid, DeformConv, Col2Im. Places and
// weights are in double precision. Formulas: onnx.ai; PyTorch's grid_sample.
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/neural/windows.hpp"

namespace loom::core::evaluate {
namespace {

enum class Beyond : uint8_t { zeros, border, reflection };
struct Sampler {
  int axes = 2;
  int64_t extent[3] = {1, 1, 1};
  int order = 1;  // 0 nearest, 1 linear, 3 cubic
  Beyond beyond = Beyond::zeros;
  bool corners = false;
};

// A place reflected at both ends until it is inside.
double reflected(double x, double low, double high) {
  if (high <= low) return low;
  const double range = high - low;
  double at = std::fmod(std::abs(x - low), 2 * range);
  if (at > range) at = 2 * range - at;
  return low + at;
}

double placed(const Sampler& s, double x, int64_t n) {
  const auto extent = static_cast<double>(n);
  if (s.beyond == Beyond::border) return std::clamp(x, 0.0, extent - 1);
  if (s.beyond == Beyond::reflection)
    return std::clamp(s.corners ? reflected(x, 0, extent - 1) : reflected(x, -0.5, extent - 0.5),
                      0.0, extent - 1);
  return x;
}

// Taps of one axis around x.
struct AxisTaps {
  int count = 0;
  int64_t at[4] = {};
  double weight[4] = {};
};
AxisTaps axis_taps(const Sampler& s, double x, int64_t n) {
  AxisTaps t;
  const auto add = [&](double at, double weight) {
    // Cubic taps are put inside one by one, the place itself is not.
    const double inside = s.order == 3 ? placed(s, at, n) : at;
    const bool known = inside >= 0 && inside < static_cast<double>(n);
    t.at[t.count] = known ? static_cast<int64_t>(inside) : -1;
    t.weight[t.count++] = weight;
  };
  if (s.order != 3) x = placed(s, x, n);
  if (!(std::abs(x) < 1e15)) return t;
  if (s.order == 0) {
    add(std::nearbyint(x), 1);
    return t;
  }
  const double base = std::floor(x), ratio = x - base;
  if (s.order == 1) {
    add(base, 1 - ratio);
    add(base + 1, ratio);
    return t;
  }
  constexpr double a = -0.75;
  for (int k = -1; k <= 2; ++k) {
    const double d = std::abs(static_cast<double>(k) - ratio);
    add(base + k, d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                         : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a);
  }
  return t;
}

// A value of one channel at a place (the last axis first, as grids have it).
template <class T>
double sampled(const Sampler& s, const T* image, const double* position) {
  AxisTaps t[3];
  for (int a = 0; a < 3; ++a) {
    if (a < s.axes)
      t[a] = axis_taps(s, position[a], s.extent[a]);
    else
      t[a].count = 1, t[a].weight[0] = 1;
  }
  double sum = 0;
  for (int k = 0; k < t[2].count; ++k) {
    for (int j = 0; j < t[1].count; ++j) {
      for (int i = 0; i < t[0].count; ++i) {
        if (t[0].at[i] < 0 || t[1].at[j] < 0 || t[2].at[k] < 0) continue;
        const int64_t at = (t[2].at[k] * s.extent[1] + t[1].at[j]) * s.extent[0] + t[0].at[i];
        sum += static_cast<double>(image[at]) * t[0].weight[i] * t[1].weight[j] * t[2].weight[k];
      }
    }
  }
  return sum;
}

Result<Sampler> sampler_of(const Call& c, const Value& x) {
  Sampler s;
  s.axes = x.rank() - 2;
  if (s.axes < 2 || s.axes > 3) return c.not_done(cat(s.axes, " spatial axes"));
  for (int a = 0; a < s.axes; ++a) s.extent[a] = x.dims[static_cast<size_t>(x.rank() - 1 - a)];
  const std::string mode = c.text("mode", "linear"), pad = c.text("padding_mode", "zeros");
  if (mode == "nearest")
    s.order = 0;
  else if (mode == "cubic" || mode == "bicubic")
    s.order = 3;
  else if (mode != "linear" && mode != "bilinear")
    return c.bad("unknown mode");
  if (s.order == 3 && s.axes == 3) return c.not_done("cubic sampling of volumes");
  if (pad == "border")
    s.beyond = Beyond::border;
  else if (pad == "reflection")
    s.beyond = Beyond::reflection;
  else if (pad != "zeros")
    return c.bad("unknown padding_mode");
  s.corners = c.integer("align_corners", 0) != 0;
  return s;
}

Status grid_sample(const Call& c) {
  if (!is_real(c.value(0).type)) return c.not_done("integers");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value grid, c.as(1, OnnxType::f64));
  LOOM_ASSIGN(const Sampler s, sampler_of(c, x));
  if (grid.rank() != x.rank() || grid.dims[0] != x.dims[0] || grid.dims.back() != s.axes)
    return c.bad("a grid that does not fit");
  Dims dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const int64_t out = product(dims, 2, x.rank()), in = product(x.dims, 2, x.rank());
  const int64_t channels = x.dims[1];
  with_real(x.type, [&]<class T>(T) {
    c.parallel(x.dims[0] * out, 60.0 * static_cast<double>(channels),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   double position[3] = {0, 0, 0};
                   for (int a = 0; a < s.axes; ++a) {
                     const double v = grid.data<double>()[i * s.axes + a];
                     const auto n = static_cast<double>(s.extent[a]);
                     position[a] = s.corners ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
                   }
                   for (int64_t ch = 0; ch < channels; ++ch) {
                     const int64_t plane = i / out * channels + ch;
                     y.data<T>()[plane * out + i % out] =
                         static_cast<T>(sampled(s, x.data<T>() + plane * in, position));
                   }
                 }
               });
  });
  return c.give_as(y, c.value(0).type);
}

Status affine_grid(const Call& c) {
  LOOM_ASSIGN(const Value theta, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(const Dims size, c.int_list(1));
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if ((axes != 2 && axes != 3) || theta.dims != Dims{size[0], axes, axes + 1})
    return c.bad("a matrix that does not fit the size");
  const bool corners = c.integer("align_corners", 0) != 0;
  Dims dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  const int64_t points = product(dims, 1, static_cast<int>(dims.size()));
  dims.push_back(axes);
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, dims));
  for (int64_t i = 0; i < size[0] * points; ++i) {
    double at[4] = {0, 0, 0, 1};
    at[axes] = 1;
    int64_t rest = i % points;
    for (int64_t a = 0; a < axes; ++a) {  // the last axis of the image is x
      const int64_t n = size[static_cast<size_t>(axes + 1 - a)];
      const auto k = static_cast<double>(rest % n), extent = static_cast<double>(n);
      rest /= n;
      if (corners)
        at[a] = n == 1 ? 0 : 2 * k / (extent - 1) - 1;
      else
        at[a] = (2 * k + 1) / extent - 1;
    }
    for (int64_t a = 0; a < axes; ++a) {
      double sum = 0;
      for (int64_t k = 0; k <= axes; ++k)
        sum += theta.data<double>()[(i / points * axes + a) * (axes + 1) + k] * at[k];
      y.data<double>()[i * axes + a] = sum;
    }
  }
  return c.give_as(y, c.value(0).type);
}

// Columns back to an image: overlapping values are added.
Status col2im(const Call& c) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Dims image, c.int_list(1));
  LOOM_ASSIGN(const Dims block, c.int_list(2));
  const auto axes = static_cast<int>(image.size());
  if (axes < 1 || block.size() != image.size() || x.rank() != 3) return c.bad("shapes do not fit");
  LOOM_ASSIGN(const Dims strides, per_axis(c, "strides", axes, 1, 1));
  LOOM_ASSIGN(const Dims dilations, per_axis(c, "dilations", axes, 1, 1));
  LOOM_ASSIGN(const Dims pads, per_axis(c, "pads", 2 * axes, 0, 0));
  const int64_t taps = product(block);
  Dims counts;
  for (size_t a = 0; a < image.size(); ++a) {
    if (image[a] < 1 || block[a] < 1) return c.bad("an extent below 1");
    const int64_t room = image[a] + pads[a] + pads[a + image.size()];
    counts.push_back((room - dilations[a] * (block[a] - 1) - 1) / strides[a] + 1);
  }
  const int64_t windows = product(counts);
  if (taps < 1 || x.dims[1] % taps != 0 || x.dims[2] != windows) return c.bad("columns do not fit");
  Dims dims{x.dims[0], x.dims[1] / taps};
  dims.insert(dims.end(), image.begin(), image.end());
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  fill_zero(y);
  const int64_t size = product(image);
  with_type(x.type, [&]<class T>(T) {
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t window = i % windows, tap = i / windows % taps, plane = i / windows / taps;
      int64_t w = window, t = tap, at = 0, step = 1;
      bool inside = true;
      for (size_t a = image.size(); a-- > 0;) {
        const int64_t p = w % counts[a] * strides[a] + t % block[a] * dilations[a] - pads[a];
        w /= counts[a], t /= block[a];
        inside = inside && p >= 0 && p < image[a];
        at += p * step;
        step *= image[a];
      }
      if (inside) y.data<T>()[plane * size + at] += x.data<T>()[i];
    }
  });
  return c.give_as(y, c.value(0).type);
}

// Convolution of images whose taps are moved by offsets (and weighed by a mask). The taps are
// sampled; then it is a product with the weights.
Status deform_conv(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value w, c.as(1, x.type));
  LOOM_ASSIGN(const Value offset, c.as(2, OnnxType::f64));
  if (x.rank() != 4 || w.rank() != 4) return c.not_done("inputs that are not images");
  LOOM_ASSIGN(Windows win, windows_of(c, x.dims, Dims(w.dims.begin() + 2, w.dims.end())));
  ConvShape& s = win.shape;
  s.channels = x.dims[1], s.filters = w.dims[0], s.groups = c.integer("group", 1);
  const int64_t parts = c.integer("offset_group", 1);
  if (s.groups < 1 || parts < 1 || s.channels % s.groups != 0 || s.filters % s.groups != 0 ||
      s.channels % parts != 0 || w.dims[1] != s.channels / s.groups)
    return c.bad("channels, groups and weights that do not fit");
  const int64_t out = s.out_positions(), taps = s.taps(), batch = x.dims[0];
  if (offset.dims != Dims{batch, parts * 2 * taps, s.out[1], s.out[2]})
    return c.bad("offsets that do not fit");
  Value mask, bias;
  if (c.has(4)) {
    LOOM_ASSIGN(mask, c.as(4, OnnxType::f64));
    if (mask.count() != batch * parts * taps * out) return c.bad("a mask that does not fit");
  }
  if (c.has(3)) {
    LOOM_ASSIGN(bias, c.as(3, OnnxType::f64));
    if (bias.count() != s.filters) return c.bad("a bias per filter is needed");
  }
  Sampler sampler;
  sampler.extent[0] = s.in[2], sampler.extent[1] = s.in[1];
  LOOM_ASSIGN(Value columns, c.make(OnnxType::f64, {batch, s.channels, taps, out}));
  with_real(x.type, [&]<class T>(T) {
    c.parallel(
        batch * s.channels, 40.0 * static_cast<double>(taps * out),
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const int64_t n = r / s.channels, part = r % s.channels / (s.channels / parts);
            for (int64_t i = 0; i < taps * out; ++i) {
              const int64_t tap = i / out, o = i % out;
              const double* move_by =
                  offset.data<double>() + ((n * parts + part) * 2 * taps + 2 * tap) * out + o;
              const double at[2] = {static_cast<double>(o % s.out[2] * s.stride[2] - s.pad[2] +
                                                        tap % s.kernel[2] * s.dilation[2]) +
                                        move_by[out],
                                    static_cast<double>(o / s.out[2] * s.stride[1] - s.pad[1] +
                                                        tap / s.kernel[2] * s.dilation[1]) +
                                        move_by[0]};
              double v = sampled(sampler, x.data<T>() + r * s.in_positions(), at);
              if (c.has(4)) v *= mask.data<double>()[((n * parts + part) * taps + tap) * out + o];
              columns.data<double>()[r * taps * out + i] = v;
            }
          }
        });
  });
  LOOM_ASSIGN(const Value weights, cast(c.rt.memory, w, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {batch, s.filters, s.out[1], s.out[2]}));
  const int64_t patch = s.patch(), each = s.filters / s.groups;
  for (int64_t g = 0; g < batch * s.groups; ++g) {
    const int64_t n = g / s.groups, group = g % s.groups;
    multiply<double>(c, weights.data<double>() + group * each * patch,
                     columns.data<double>() + (n * s.channels * taps + group * patch) * out,
                     y.data<double>() + (n * s.filters + group * each) * out, {each, patch, out});
  }
  for (int64_t i = 0; c.has(3) && i < y.count(); ++i)
    y.data<double>()[i] += bias.data<double>()[i / out % s.filters];
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kImages[] = {
    {"", "GridSample", grid_sample, "aa align_corners mode padding_mode"},
    {"", "AffineGrid", affine_grid, "aa align_corners"},
    {"", "Col2Im", col2im, "aaa dilations pads strides"},
    {"", "DeformConv", deform_conv,
     "aaa?aa dilations group kernel_shape offset_group pads strides"},
};

}  // namespace

std::span<const Operator> image_operators() {
  return kImages;
}

}  // namespace loom::core::evaluate
