// Resize and Upsample: one axis after the other, each output place being a weighted sum of a few
// input places (one for nearest). Formulas: onnx.ai, Resize.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

enum class Mode : uint8_t { nearest, linear, cubic };

struct Resizing {
  Mode mode = Mode::nearest;
  std::string coordinates, nearest;
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

// The inputs and weights of one output position of an axis.
struct Taps {
  std::vector<int64_t> at;
  std::vector<double> weight;
  bool outside = false;
};

struct AxisSize {
  int64_t in, out;
  double scale, roi_begin = 0, roi_end = 1;
};

double source_of(const Resizing& r, const AxisSize& a, int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(a.in);
  // With scales, this is the extent before it was rounded down, as in the standard.
  const double out = a.scale * in;
  if (r.coordinates == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (r.coordinates == "asymmetric") return x / a.scale;
  if (r.coordinates == "tf_crop_and_resize") {
    const double part = (a.roi_end - a.roi_begin) * (in - 1);
    return a.roi_begin * (in - 1) + (a.out == 1 ? part / 2 : x * part / (out - 1));
  }
  const double half = (x + 0.5) / a.scale - 0.5;
  if (r.coordinates == "pytorch_half_pixel") return a.out == 1 ? 0 : half;
  if (r.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - static_cast<double>(a.out) / out) + half;
  return half;
}

double weight_of(const Resizing& r, double distance) {
  const double x = std::abs(distance), a = r.cubic_a;
  if (r.mode == Mode::linear) return std::max(0.0, 1 - x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

int64_t nearest_of(const Resizing& r, double x) {
  if (r.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (r.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(r.nearest == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                               : std::ceil(x - 0.5));
}

Taps taps_of(const Resizing& r, const AxisSize& a, int64_t i) {
  const double x = source_of(r, a, i);
  Taps t;
  t.outside = r.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1));
  const auto add = [&](int64_t at, double weight) {
    const bool inside = at >= 0 && at < a.in;
    if (!inside && r.exclude_outside) return;
    t.at.push_back(std::clamp<int64_t>(at, 0, a.in - 1));
    t.weight.push_back(weight);
  };
  if (r.mode == Mode::nearest) {
    add(nearest_of(r, x), 1);
    if (t.at.empty()) t.at.push_back(0), t.weight.push_back(1);
    return t;
  }
  const auto base = static_cast<int64_t>(std::floor(x));
  const double ratio = x - std::floor(x);
  const double scale = r.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = r.mode == Mode::linear ? 1 : 2;
  const auto start = static_cast<int64_t>(std::floor(-reach / scale)) + 1;
  for (int64_t k = start; k < 2 - start; ++k)
    add(base + k, weight_of(r, scale * (static_cast<double>(k) - ratio)));
  const double sum = std::accumulate(t.weight.begin(), t.weight.end(), 0.0);
  if (r.antialias || r.exclude_outside) {
    for (double& w : t.weight) w = sum == 0 ? 0 : w / sum;
  }
  return t;
}

// One axis of x, of computing type T; nearest moves elements of any type.
template <class T>
void resize_axis(const Call& c, const Value& x, Value& y, int axis, const std::vector<Taps>& taps,
                 bool moves) {
  const int64_t inner = product(x.dims, axis + 1, x.rank()), outer = product(x.dims, 0, axis);
  const int64_t in = x.dims[static_cast<size_t>(axis)];
  const auto out = static_cast<int64_t>(taps.size());
  c.parallel(outer, 4.0 * static_cast<double>(out * inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t i = 0; i < out; ++i) {
        const Taps& t = taps[static_cast<size_t>(i)];
        T* to = y.data<T>() + (o * out + i) * inner;
        if (moves) {
          std::copy_n(x.data<T>() + (o * in + t.at[0]) * inner, inner, to);
          continue;
        }
        std::fill_n(to, inner, T{});
        for (size_t k = 0; k < t.at.size(); ++k) {
          const T* from = x.data<T>() + (o * in + t.at[k]) * inner;
          const auto w = static_cast<T>(t.weight[k]);
          for (int64_t j = 0; j < inner; ++j) to[j] = static_cast<T>(to[j] + w * from[j]);
        }
      }
    }
  });
}

void resize_any(const Call& c, const Value& x, Value& y, int axis, const std::vector<Taps>& taps,
                bool nearest) {
  if (!nearest && x.type == OnnxType::f32) return resize_axis<float>(c, x, y, axis, taps, false);
  if (!nearest) return resize_axis<double>(c, x, y, axis, taps, false);
  switch (element_bytes(x.type)) {
    case 1: return resize_axis<uint8_t>(c, x, y, axis, taps, true);
    case 2: return resize_axis<uint16_t>(c, x, y, axis, taps, true);
    case 4: return resize_axis<uint32_t>(c, x, y, axis, taps, true);
    default: return resize_axis<uint64_t>(c, x, y, axis, taps, true);
  }
}

// Positions outside of the input along some axis hold one value.
Status write_outside(const Call& c, Value& y, int axis, const std::vector<Taps>& taps) {
  LOOM_ASSIGN(Value one, c.make(OnnxType::f64, {}));
  *one.data<double>() = c.real("extrapolation_value", 0);
  LOOM_ASSIGN(const Value value, cast(c.rt.memory, one, y.type));
  Dims dims = y.dims;
  dims[static_cast<size_t>(axis)] = 1;
  const Dims steps = steps_of(y.dims);
  for (size_t i = 0; i < taps.size(); ++i) {
    if (taps[i].outside)
      move(c, value, y,
           {dims, Dims(dims.size(), 0), steps, 0,
            static_cast<int64_t>(i) * steps[static_cast<size_t>(axis)]});
  }
  return {};
}

Status resize_by(const Call& c, const Resizing& r, const std::vector<int>& axes,
                 const std::vector<AxisSize>& sizes) {
  const bool nearest = r.mode == Mode::nearest;
  const OnnxType type = c.value(0).type;
  LOOM_ASSIGN(Value x, nearest || type == OnnxType::f32         ? Result<Value>(c.value(0))
                       : is_real(type) && type != OnnxType::f64 ? c.as(0, OnnxType::f32)
                                                                : c.as(0, OnnxType::f64));
  std::vector<std::vector<Taps>> all(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool whole =
        r.coordinates != "tf_crop_and_resize" && sizes[k].in == sizes[k].out && sizes[k].scale == 1;
    if (whole) continue;
    if (sizes[k].in == 0) return c.bad("an empty axis");
    for (int64_t i = 0; i < sizes[k].out; ++i) all[k].push_back(taps_of(r, sizes[k], i));
    Dims dims = x.dims;
    dims[static_cast<size_t>(axes[k])] = sizes[k].out;
    LOOM_ASSIGN(Value y, c.make(x.type, dims));
    resize_any(c, x, y, axes[k], all[k], nearest);
    x = y;
  }
  if (r.coordinates == "tf_crop_and_resize") {
    for (size_t k = 0; k < axes.size(); ++k) LOOM_TRY(write_outside(c, x, axes[k], all[k]));
  }
  if (is_real(type)) return c.give_as(x, type);
  if (!nearest) {  // integers are rounded
    for (int64_t i = 0; i < x.count(); ++i)
      x.data<double>()[i] = std::nearbyint(x.data<double>()[i]);
  }
  return c.give_as(x, type);
}

Result<std::vector<double>> reals_of(const Call& c, size_t i) {
  if (!c.has(i)) return std::vector<double>{};
  LOOM_ASSIGN(const Value v, c.as(i, OnnxType::f64));
  return std::vector<double>(v.data<double>(), v.data<double>() + v.count());
}

Result<std::vector<AxisSize>> axis_sizes(const Call& c, const std::vector<int>& axes,
                                         const std::vector<double>& scales, const Dims& sizes) {
  const Value& x = c.value(0);
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  std::vector<AxisSize> out;
  double common = policy == "not_larger" ? 1e300 : 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    AxisSize a{x.dims[static_cast<size_t>(axes[k])], 0, 1};
    const auto in = static_cast<double>(a.in);
    if (!sizes.empty()) {
      a.out = sizes[k];
      a.scale = static_cast<double>(a.out) / in;
      common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
    } else {
      a.scale = scales[k];
      if (!(a.scale > 0 && a.scale * in < 1e9)) return c.bad("a scale that is out of range");
      a.out = static_cast<int64_t>(std::floor(in * a.scale));
    }
    if (a.out < 0 || a.out > (int64_t{1} << 30)) return c.bad("a size that is out of range");
    out.push_back(a);
  }
  if (!sizes.empty() && policy != "stretch") {
    for (AxisSize& a : out) {
      a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
      a.scale = common;
    }
  }
  return out;
}

Result<Mode> mode_of(const Call& c) {
  const std::string mode = c.text("mode", "nearest");
  if (mode == "nearest") return Mode::nearest;
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear") return Mode::linear;
  if (mode == "cubic" || mode == "bicubic") return Mode::cubic;
  return c.not_done(cat("mode '", printable(mode), "'"));
}

Status resize(const Call& c) {
  Resizing r;
  LOOM_ASSIGN(r.mode, mode_of(c));
  const bool old = c.opset < 11;
  r.coordinates = c.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  r.nearest = c.text("nearest_mode", old ? "floor" : "round_prefer_floor");
  r.cubic_a = c.real("cubic_coeff_a", -0.75);
  r.antialias = c.integer("antialias", 0) != 0 && r.mode != Mode::nearest;
  r.exclude_outside = c.integer("exclude_outside", 0) != 0;
  const int rank = c.value(0).rank();
  Dims list = c.list("axes");
  if (list.empty()) {
    list.resize(static_cast<size_t>(rank));
    std::iota(list.begin(), list.end(), 0);
  }
  LOOM_ASSIGN(const std::vector<int> axes, c.axes(list, rank));
  LOOM_ASSIGN(const std::vector<double> scales, reals_of(c, old ? 1 : 2));
  LOOM_ASSIGN(const std::vector<double> roi, reals_of(c, old ? 4 : 1));
  LOOM_ASSIGN(const Dims sizes, c.int_list(3));
  if ((sizes.empty() ? scales.size() : sizes.size()) != axes.size())
    return c.bad("a scale or a size per axis is needed");
  LOOM_ASSIGN(std::vector<AxisSize> each, axis_sizes(c, axes, scales, sizes));
  if (r.coordinates == "tf_crop_and_resize") {
    if (roi.size() != 2 * axes.size()) return c.bad("a region per axis is needed");
    for (size_t k = 0; k < axes.size(); ++k)
      each[k].roi_begin = roi[k], each[k].roi_end = roi[k + axes.size()];
  }
  return resize_by(c, r, axes, each);
}

Status upsample(const Call& c) {
  Resizing r;
  LOOM_ASSIGN(r.mode, mode_of(c));
  r.coordinates = "asymmetric";
  r.nearest = "floor";
  const int rank = c.value(0).rank();
  LOOM_ASSIGN(std::vector<double> scales, reals_of(c, 1));
  const OnnxAttribute* a = c.node.find("scales");
  if (a != nullptr) scales.assign(a->reals.begin(), a->reals.end());
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (scales.size() != axes.size()) return c.bad("a scale per axis is needed");
  LOOM_ASSIGN(const std::vector<AxisSize> each, axis_sizes(c, axes, scales, {}));
  return resize_by(c, r, axes, each);
}

constexpr Operator kResizes[] = {
    {"", "Resize", resize, {}},
    {"", "Upsample", upsample, {}},
};

}  // namespace

std::span<const Operator> resize_operators() {
  return kResizes;
}

}  // namespace loom::core::evaluate
