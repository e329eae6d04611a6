// Operators that only move values, the general way: shapes, slices, joins, look-ups. See
// general.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

constexpr int64_t kToEnd = int64_t{1} << 52;  // as far as a slice reaches
constexpr size_t kMaxRuns = 1024;             // of places that are taken out of an axis

int64_t product(const std::vector<int64_t>& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= dims[i];
  return n;
}

// Whether a slice of one axis, not of the batch, takes none of its values.
bool leaves_nothing(const Shape& shape, const std::vector<int64_t>& starts,
                    const std::vector<int64_t>& ends, const std::vector<int64_t>& axes,
                    const std::vector<int64_t>& steps) {
  if (axes.size() != 1 || starts.size() != 1 || ends.size() != 1 ||
      steps != std::vector{int64_t{1}})
    return false;
  const int64_t axis = axes[0] < 0 ? axes[0] + shape.rank() : axes[0];
  if (axis < 1 || axis >= shape.rank()) return false;
  const int64_t extent = shape[static_cast<int>(axis)];
  const auto clamped = [&](int64_t p) {
    return std::clamp<int64_t>(p < 0 ? p + extent : p, 0, extent);
  };
  return clamped(starts[0]) >= clamped(ends[0]);
}

}  // namespace

// The values of x as dims, which may hold the batch: no extent that follows from it is written
// down.
Result<GraphImport::Value> GraphImport::view(const OnnxNode& n, const Value& x,
                                             const std::vector<int64_t>& dims) {
  Value y = x;
  y.f = nullptr;
  y.name.clear();
  y.scalar = dims.empty();
  std::vector<int64_t> shape = dims.empty() ? std::vector<int64_t>{1} : dims;
  if (axis_extents(x.shape) == shape) return y;
  bool open = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool same =
        static_cast<int>(i) < x.shape.rank() && x.shape[static_cast<int>(i)] == shape[i];
    if (same) {
      shape[i] = 0;
    } else if (batch_ == open_batch_ && shape[i] % batch_ == 0 && !open) {
      shape[i] = -1;
      open = true;
    }
  }
  const bool scalar = y.scalar;
  LOOM_ASSIGN(y, emit(n, LayerKind::view, {{"shape", shape}}, {x}));
  y.scalar = scalar;
  return y;
}

Status GraphImport::size_node(const OnnxNode& n) {
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  depends_on_batch_ |= other_extents(dims) != dims;
  ImportValue v;
  v.constant = std::make_shared<const Constant>(
      Constant{{}, OnnxType::i64, {static_cast<double>(product(dims, 0, dims.size()))}});
  return define_constant(n, std::move(v));
}

// Reshape, Flatten, Squeeze, Unsqueeze of computed values.
Status GraphImport::reshape(const OnnxNode& n) {
  LOOM_ASSIGN(const Value* x, value(n, 0));
  int64_t inner = 0;
  std::vector<int64_t> dims;
  if (fixed_ != 0 && layer_of(n.op).function == "reshape" && batch_axis(*x) >= 0) {
    LOOM_ASSIGN(dims, list(n, 1, "shape", {}));
    LOOM_ASSIGN(dims, opened(n, *x, std::move(dims), inner));
  } else {
    LOOM_ASSIGN(dims, reshaped(n, extents(*x)));
  }
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return refuse(n, cat("a shape of ", dims.size(), " axes; ", Shape::kMaxRank, " are read"));
  LOOM_ASSIGN(const Value from, stream(n, 0));
  std::vector<int64_t> behind = axis_extents(values_.at(input_name_).shape);
  behind.push_back(1);
  if (ids_ && from.at == GraphValue{} && dims == behind) {
    // Ids that something is compared with: they stay the input, and only an Equal reads them so.
    Value ids = from;
    ids.shape = shape_of(dims);
    return define(n, std::move(ids));
  }
  LOOM_ASSIGN(Value y, view(n, from, dims));
  y.inner = inner;
  return define(n, std::move(y));
}

Status GraphImport::transpose(const OnnxNode& n, const std::vector<int64_t>& order) {
  LOOM_ASSIGN(const Value* known, value(n, 0));
  const Value f = *known;
  Value y;
  if (f.is_constant() || f.f == nullptr || f.at.node >= kGraphInput) {
    LOOM_ASSIGN(const Value x, stream(n, 0));
    if (x.scalar) return define(n, x);
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", order}}, {x}));
  }
  if (f.f != nullptr && f.base.node >= kGraphInput) {
    // A function of values is the same function of the values moved; those are moved once.
    std::vector<int64_t> key = {f.base.node, f.base.output};
    key.insert(key.end(), order.begin(), order.end());
    if (!moved_.contains(key)) {
      Value base;
      base.at = f.base;
      base.shape = f.shape;
      LOOM_ASSIGN(const Value made, emit(n, LayerKind::transpose, {{"axes", order}}, {base}));
      moved_.emplace(key, made);
    }
    const Value& base = moved_.at(key);
    y.f = f.f;
    y.base = base.at;
    y.shape = base.shape;
  }
  return define(n, std::move(y));
}

Status GraphImport::slice(const OnnxNode& n, OnnxSlice args) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  auto& [starts, ends, axes, steps] = args;
  // The whole of the batch, however large it is.
  for (size_t i = 0; i < axes.size() && i < ends.size() && i < starts.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + x.shape.rank() : axes[i];
    if (axis == 0 && starts[i] == 0 && ends[i] >= x.shape[0]) ends[i] = kToEnd;
  }
  if (leaves_nothing(x.shape, starts, ends, axes, steps)) {
    std::vector<int64_t> dims = axis_extents(x.shape);
    dims[static_cast<size_t>(axes[0] < 0 ? axes[0] + x.shape.rank() : axes[0])] = 0;
    Value none;
    none.constant = std::make_shared<const Constant>(Constant{std::move(dims), x.type, {}});
    return define(n, std::move(none));
  }
  LOOM_ASSIGN(Value y,
              emit(n, LayerKind::slice,
                   {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}}, {x}));
  return define(n, std::move(y));
}

Status GraphImport::split_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  int64_t axis = attribute(n, "axis", 0);
  if (axis < 0) axis += x.shape.rank();
  if (axis < 0 || axis >= x.shape.rank()) return refuse(n, "an axis that does not exist");
  const int64_t extent = x.shape[static_cast<int>(axis)];
  const auto parts = static_cast<int64_t>(n.outputs.size());
  const int64_t each = (extent + parts - 1) / std::max<int64_t>(parts, 1);
  std::vector<int64_t> equal(static_cast<size_t>(parts), each);
  if (parts > 0) equal.back() = extent - each * (parts - 1);
  LOOM_ASSIGN(const std::vector<int64_t> widths, list(n, 1, "split", equal));
  if (widths.size() != n.outputs.size()) return refuse(n, "as many widths as outputs are needed");
  int64_t first = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    LOOM_ASSIGN(Value y, emit(n, LayerKind::slice,
                              {{"starts", std::vector<int64_t>{first}},
                               {"ends", std::vector<int64_t>{first + widths[i]}},
                               {"axes", std::vector<int64_t>{axis}}},
                              {x}));
    LOOM_TRY(define(n, std::move(y), i));
    first += widths[i];
  }
  return first == extent ? Status{} : refuse(n, "widths that do not make up the axis");
}

// Whether input i is known to have no values: ConstantOfShape of a 0, or a slice of nothing.
Result<bool> GraphImport::is_empty(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const Value* v, value(n, i));
  if (v->tensor != nullptr) return v->tensor->count() == 0;
  return v->constant != nullptr && v->constant->count() == 0;
}

Status GraphImport::concat(const OnnxNode& n, int64_t axis) {
  std::vector<Value> parts;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    LOOM_ASSIGN(const bool nothing, is_empty(n, i));
    if (nothing) continue;
    LOOM_ASSIGN(const Value part, stream(n, i));
    parts.push_back(part);
  }
  if (parts.size() == 1) return define(n, parts[0]);
  LOOM_ASSIGN(Value y, emit(n, LayerKind::concat, {{"axis", axis}}, parts));
  return define(n, std::move(y));
}

// x, which has an extent of 1 at an axis, for every sample of the batch along it.
Result<GraphImport::Value> GraphImport::for_each_sample(const OnnxNode& n, const Value& x,
                                                        int axis) {
  std::vector<int64_t> order;
  for (int i = 0; i < x.shape.rank(); ++i) order.push_back(i);
  std::swap(order[0], order[static_cast<size_t>(axis)]);  // its own inverse
  Value y = x;
  if (axis > 0) {
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", order}}, {y}));
  }
  LOOM_ASSIGN(y, emit(n, LayerKind::expand, {{"shape", std::vector<int64_t>{1}}},
                      {y, values_.at(input_name_)}));
  if (axis > 0) return emit(n, LayerKind::transpose, {{"axes", order}}, {y});
  return y;
}

Status GraphImport::expand(const OnnxNode& n, const std::vector<int64_t>& shape) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  std::vector<int64_t> to = shape;
  if (to.empty() || (!x.scalar && to == axis_extents(x.shape))) return define(n, x);
  std::vector<int> samples;  // axes that are the batch of the input, whatever it is
  const int missing = static_cast<int>(to.size()) - x.shape.rank();
  for (size_t i = 0; i < to.size(); ++i) {
    const int axis = static_cast<int>(i) - missing;
    const int64_t have = axis >= 0 && !x.scalar ? x.shape[axis] : 1;
    to[i] = opened(to[i], have);
    if (to[i] == have) {
      to[i] = 1;
    } else if (to[i] == batch_ && batch_ == open_batch_) {
      to[i] = 1;
      samples.push_back(static_cast<int>(i) - std::min(missing, 0));
    }
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::expand, {{"shape", to}}, {x}));
  for (const int axis : samples) {
    LOOM_ASSIGN(y, for_each_sample(n, y, axis));
  }
  return define(n, std::move(y));
}

// Rows of a table that ids name.
Status GraphImport::look_up(const OnnxNode& n, int64_t axis) {
  LOOM_ASSIGN(const Value* indices, value(n, 1));
  const Value ids = *indices;
  LOOM_ASSIGN(const ConstantRef rows, constant(n, 0));
  if (axis == 0 && rows->dims.size() == 2 && whole_inputs_.contains(ids.at.node)) {
    LOOM_ASSIGN(Value y, rows_of_input(n, ids, *rows));
    return define(n, std::move(y));
  }
  if (axis == 0 && ids.at.node >= 0) {
    LOOM_ASSIGN(Value y, looked_up(n, ids, *rows));
    return define(n, std::move(y));
  }
  if (axis != 0 || rows->dims.size() != 2 || !ids_ || !(ids.at == GraphValue{}))
    return refuse(n, "looks up a table by what is not the input of the model");
  LOOM_ASSIGN(
      Value y,
      emit(n, LayerKind::embedding, {{"vocab", rows->dims[0]}, {"width", rows->dims[1]}}, {ids},
           {param(n, 0, "weight", Shape{rows->dims[0], rows->dims[1]}, rows->floats())}));
  if (shares_rows(n, 0)) nodes_.back().source = source_of_rows(n, 0);
  return define(n, std::move(y));
}

// One place, or some places, of an axis.
Status GraphImport::pick(const OnnxNode& n, int64_t axis, const Constant& indices) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  std::vector<int64_t> list = indices.integers();
  list.resize(static_cast<size_t>(indices.count()), list[0]);
  if (takes_all(x, list)) {
    int64_t inner = 0;
    LOOM_ASSIGN(const std::vector<int64_t> dims, opened(n, x, indices.dims, inner));
    LOOM_ASSIGN(Value y, view(n, x, dims));
    y.inner = inner;
    return define(n, std::move(y));
  }
  LOOM_ASSIGN(Value y, picked(n, x, axis, std::move(list)));
  if (indices.dims.size() != 1) {
    std::vector<int64_t> dims = axis_extents(y.shape);
    dims.erase(dims.begin() + axis);
    dims.insert(dims.begin() + axis, indices.dims.begin(), indices.dims.end());
    LOOM_ASSIGN(y, view(n, y, dims));
  }
  return define(n, std::move(y));
}

// The places `list` of an axis: slices, as few as there are runs of equal steps.
Result<GraphImport::Value> GraphImport::picked(const OnnxNode& n, const Value& x, int64_t axis,
                                               std::vector<int64_t> list) {
  const int64_t extent = x.shape[static_cast<int>(axis)];
  for (int64_t& p : list) p += p < 0 ? extent : 0;
  if (std::ranges::any_of(list, [&](int64_t p) { return p < 0 || p >= extent; }))
    return refuse(n, "a place outside of its axis");
  std::vector<Value> parts;
  for (size_t i = 0, end = 0; i < list.size(); i = end) {
    const int64_t step = i + 1 < list.size() ? list[i + 1] - list[i] : 1;
    for (end = i + 1; end < list.size() && list[end] == list[end - 1] + step; ++end) continue;
    const bool run = step == 1 || (step > 1 && end - i > 2);
    if (!run) end = i + 1;
    if (run && step == 1 && static_cast<int64_t>(end - i) == extent) {
      parts.push_back(x);  // all of it, in its order
      continue;
    }
    if (parts.size() >= kMaxRuns) return refuse(n, cat("places of more than ", kMaxRuns, " runs"));
    using Axes = std::vector<int64_t>;
    LOOM_ASSIGN(const Value part, emit(n, LayerKind::slice,
                                       {{"starts", Axes{list[i]}},
                                        {"ends", Axes{list[end - 1] + 1}},
                                        {"axes", Axes{axis}},
                                        {"steps", Axes{run ? step : 1}}},
                                       {x}));
    parts.push_back(part);
  }
  if (parts.size() == 1) return parts[0];
  return emit(n, LayerKind::concat, {{"axis", axis}}, parts);
}

// Constant places in several axes at once: those axes become one.
Status GraphImport::gather_nd_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, numbers(n, 0));
  LOOM_ASSIGN(const ConstantRef at, constant(n, 1));
  const int64_t width = at->dims.empty() ? 0 : at->dims.back();
  if (attribute(n, "batch_dims", 0) != 0) return refuse(n, "batch_dims other than 0");
  if (width < 1 || width > x.shape.rank() || at->count() < 1 || at->count() > kMaxFolded)
    return refuse(n, "places that do not fit the axes of its input");
  const std::vector<int64_t> have = axis_extents(x.shape), all = at->integers();
  std::vector<int64_t> list, flat = {product(have, 0, static_cast<size_t>(width))};
  for (int64_t i = 0; i < at->count(); i += width) {
    int64_t clamped = 0;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t extent = have[static_cast<size_t>(k)];
      int64_t p = all[all.size() == 1 ? 0 : static_cast<size_t>(i + k)];
      p += p < 0 ? extent : 0;
      if (p < 0 || p >= extent) return refuse(n, "a place outside of its axis");
      clamped = clamped * extent + p;
    }
    list.push_back(clamped);
  }
  flat.insert(flat.end(), have.begin() + width, have.end());
  std::vector<int64_t> dims(at->dims.begin(), at->dims.end() - 1);
  dims.insert(dims.end(), have.begin() + width, have.end());
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return refuse(n, cat("a shape of ", dims.size(), " axes; ", Shape::kMaxRank, " are read"));
  LOOM_ASSIGN(const Value row, view(n, x, flat));
  LOOM_ASSIGN(const Value taken, picked(n, row, 0, std::move(list)));
  LOOM_ASSIGN(Value y, view(n, taken, dims));
  return define(n, std::move(y));
}

}  // namespace loom::core
