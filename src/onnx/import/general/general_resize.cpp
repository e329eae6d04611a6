// Resize and Upsample, the general way. See general.hpp. Where it is what our Upsample does, it is
// that layer. Else each axis by itself: nearest takes the places that the standard names, linear
// and cubic are a product with the matrix of their weights. Coordinates are computed in float, as
// runtimes do, so that halves fall on the same side.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

using List = std::vector<int64_t>;

struct Axis {
  int64_t in = 1, out = 1;
  float scale = 1;
};

struct Way {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude = false, old = false;
};

Way way_of(const OnnxNode& n, bool modern) {
  Way w;
  w.mode = attribute_text(n, "mode", "nearest");
  w.coordinates =
      attribute_text(n, "coordinate_transformation_mode", modern ? "half_pixel" : "asymmetric");
  w.nearest = attribute_text(n, "nearest_mode", modern ? "round_prefer_floor" : "floor");
  w.cubic = attribute_real(n, "cubic_coeff_a", -0.75);
  w.exclude = attribute(n, "exclude_outside", 0) != 0;
  w.old = !modern;
  return w;
}

bool is_read(const Way& w, const OnnxNode& n) {
  const auto one_of = [](const std::string& s, std::initializer_list<std::string_view> known) {
    return std::ranges::find(known, s) != known.end();
  };
  return one_of(w.mode, {"nearest", "linear", "cubic"}) &&
         one_of(w.coordinates, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                "align_corners", "asymmetric"}) &&
         one_of(w.nearest, {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) &&
         attribute(n, "antialias", 0) == 0 &&
         attribute_text(n, "keep_aspect_ratio_policy", "stretch") == "stretch";
}

// The position of output i in the input.
float source_position(const Way& w, const Axis& a, int64_t i) {
  const auto at = static_cast<float>(i);
  if (w.coordinates == "asymmetric") return at / a.scale;
  if (w.coordinates == "align_corners")
    return a.out == 1 ? 0.0f : at * static_cast<float>(a.in - 1) / static_cast<float>(a.out - 1);
  if (w.coordinates == "pytorch_half_pixel" && a.out == 1) return 0.0f;
  float offset = 0;
  if (w.coordinates == "half_pixel_symmetric") {
    const float adjustment = static_cast<float>(a.out) / (a.scale * static_cast<float>(a.in));
    offset = static_cast<float>(a.in) / 2 * (1 - adjustment);
  }
  return offset + (at + 0.5f) / a.scale - 0.5f;
}

int64_t nearest(const Way& w, const Axis& a, int64_t i) {
  const float at = source_position(w, a, i), below = std::floor(at);
  float taken = below;
  if (w.old) {  // opset 10
    taken = a.scale < 1 ? std::ceil(at) : std::trunc(at);
  } else if (w.nearest == "ceil") {
    taken = std::ceil(at);
  } else if (w.nearest == "round_prefer_ceil") {
    taken = std::floor(at + 0.5f);
  } else if (w.nearest == "round_prefer_floor") {
    taken = std::ceil(at - 0.5f);
  }
  return std::clamp(static_cast<int64_t>(taken), int64_t{0}, a.in - 1);
}

// The weights of the inputs for each output: [out, in].
Constant weights(const Way& w, const Axis& a) {
  Constant m{{a.out, a.in}, OnnxType::f32, {}};
  m.values.assign(static_cast<size_t>(a.out * a.in), 0.0);
  for (int64_t i = 0; i < a.out; ++i) {
    const auto give = [&](int64_t from, double weight) {
      from = std::clamp(from, int64_t{0}, a.in - 1);
      m.values[static_cast<size_t>(i * a.in + from)] += weight;
    };
    double at = static_cast<double>(source_position(w, a, i));
    if (w.mode == "linear") {
      at = std::clamp(at, 0.0, static_cast<double>(a.in - 1));
      const double below = std::floor(at);
      give(static_cast<int64_t>(below), 1 - (at - below));
      give(static_cast<int64_t>(below) + 1, at - below);
      continue;
    }
    const double below = std::floor(at), s = at - below, c = w.cubic;
    const auto outer = [&](double d) { return ((c * d - 5 * c) * d + 8 * c) * d - 4 * c; };
    const auto inner = [&](double d) { return ((c + 2) * d - (c + 3)) * d * d + 1; };
    const double taps[] = {outer(s + 1), inner(s), inner(1 - s), outer(2 - s)};
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t from = static_cast<int64_t>(below) - 1 + k;
      if (!w.exclude || (from >= 0 && from < a.in)) sum += taps[k];
    }
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t from = static_cast<int64_t>(below) - 1 + k;
      if (w.exclude && (from < 0 || from >= a.in)) continue;
      give(from, w.exclude ? taps[k] / sum : taps[k]);
    }
  }
  return m;
}

// Whether Upsample does the same to an axis.
bool as_upsample(const Way& w, const Axis& a) {
  if (w.mode == "nearest") {
    for (int64_t i = 0; i < a.out; ++i) {
      if (nearest(w, a, i) != i * a.in / a.out) return false;
    }
    return true;
  }
  const bool whole = static_cast<float>(a.out) == a.scale * static_cast<float>(a.in);
  return w.mode == "linear" && (w.coordinates == "align_corners" ||
                                (whole && (w.coordinates == "half_pixel" ||
                                           (w.coordinates == "pytorch_half_pixel" && a.out > 1))));
}

}  // namespace

// matrix [out, in] times one axis of x.
Result<GraphImport::Value> GraphImport::along(const OnnxNode& n, const Value& x, int axis,
                                              const Constant& matrix) {
  LOOM_ASSIGN(const Value m, constant_stream(n, matrix));
  List dims = axis_extents(x.shape);
  int64_t after = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) after *= dims[i];
  if (after == 1 && axis + 1 == x.shape.rank())
    return emit(n, LayerKind::matmul, {{"transpose_b", true}}, {x, m});
  List rows(dims.begin(), dims.begin() + axis + 1);
  rows.push_back(after);
  LOOM_ASSIGN(const Value flat, view(n, x, rows));
  LOOM_ASSIGN(const Value y, emit(n, LayerKind::matmul, {}, {m, flat}));
  dims[static_cast<size_t>(axis)] = matrix.dims[0];
  return view(n, y, dims);
}

Status GraphImport::resize_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  const bool modern = opset_ >= 11;
  const Way w = way_of(n, modern);
  if (!is_read(w, n) || (w.mode == "cubic" && x.shape.rank() != 4))
    return refuse(n, "a mode, antialias or keep_aspect_ratio_policy that is not read");
  const int rank = x.shape.rank();
  List axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  axes = attribute_list(n, "axes", axes);
  ConstantRef scales, sizes;
  const size_t at = modern ? 2 : 1;
  if (has_input(n, at)) {
    LOOM_ASSIGN(scales, constant(n, at));
  }
  if (modern && has_input(n, 3)) {
    LOOM_ASSIGN(sizes, constant(n, 3));
  }
  if (const OnnxAttribute* given = n.find("scales")) {
    Constant c{{static_cast<int64_t>(given->reals.size())}, OnnxType::f32, {}};
    c.values.assign(given->reals.begin(), given->reals.end());
    scales = std::make_shared<const Constant>(std::move(c));
  }
  const bool scaled = scales != nullptr && scales->count() > 0;
  const bool sized = sizes != nullptr && sizes->count() > 0;
  const Constant* given = sized ? sizes.get() : scaled ? scales.get() : nullptr;
  if (given == nullptr || scaled == sized || given->count() != static_cast<int64_t>(axes.size()))
    return refuse(n, "scales or sizes, one for each axis, are needed");
  std::vector<Axis> all(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) all[static_cast<size_t>(i)] = {x.shape[i], x.shape[i], 1};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return refuse(n, "an axis that does not exist");
    Axis& a = all[static_cast<size_t>(axis)];
    const double by = given->at(static_cast<int64_t>(i));
    if (!(by > 0 && by < 65536)) return refuse(n, "a scale or size that cannot be");
    const auto in = static_cast<float>(a.in);
    a.scale = sized ? static_cast<float>(by) / in : static_cast<float>(by);
    a.out = static_cast<int64_t>(sized ? by : std::floor(static_cast<double>(in * a.scale)));
    if (axis == 0 && a.scale == 1) a.out = a.in;
    if (axis == 0 && (a.out != a.in || (scaled && a.scale != 1)))
      return refuse(n, "makes the batch larger");
    // The standard counts a part of a place here, runtimes do not.
    if (scaled && w.coordinates == "align_corners" && static_cast<float>(a.out) != in * a.scale)
      return refuse(n, "align_corners with a scale that gives no whole extent; give sizes");
    if (axis != 0 && (a.out < 1 || a.out > 65536)) return refuse(n, "an extent that cannot be");
  }
  const auto still = [](const Axis& a) { return a.in == a.out && a.scale == 1; };
  bool ours = rank >= 3 && rank <= 5 && still(all[1]);
  List extents;
  for (int i = 2; i < rank; ++i) {
    const Axis& a = all[static_cast<size_t>(i)];
    ours = ours && (still(a) || as_upsample(w, a));
    extents.push_back(a.out);
  }
  if (ours) {
    LOOM_ASSIGN(Value y, emit(n, LayerKind::upsample,
                              {{"mode", w.mode == "nearest" ? "nearest" : "linear"},
                               {"output", extents},
                               {"align_corners", w.coordinates == "align_corners"}},
                              {x}));
    return define(n, std::move(y));
  }
  for (int i = 1; i < rank; ++i) {
    const Axis& a = all[static_cast<size_t>(i)];
    if (still(a)) continue;
    if (w.mode != "nearest") {
      if (a.in * a.out > (int64_t{1} << 22)) return refuse(n, "extents that are too large");
      LOOM_ASSIGN(x, along(n, x, i, weights(w, a)));
      continue;
    }
    if (a.out > 1024) return refuse(n, "extents that are too large");
    std::vector<Value> parts;
    for (int64_t k = 0; k < a.out; ++k) {
      const int64_t from = nearest(w, a, k);
      LOOM_ASSIGN(const Value part,
                  emit(n, LayerKind::slice,
                       {{"starts", List{from}}, {"ends", List{from + 1}}, {"axes", List{i}}}, {x}));
      parts.push_back(part);
    }
    if (parts.size() > 1) {
      LOOM_ASSIGN(x, emit(n, LayerKind::concat, {{"axis", int64_t{i}}}, parts));
    } else {
      x = parts[0];
    }
  }
  return define(n, std::move(x));
}

}  // namespace loom::core
