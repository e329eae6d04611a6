// Indices: the largest value of an axis, values at computed indices, and related operators. The
// general way, see general.hpp. An index is an integer as a float. Values are found by comparing
// indices with 0, 1, 2 ..., so other values do not affect the result.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxPlaces = int64_t{1} << 20;

Constant counted(int64_t count, int64_t first, std::vector<int64_t> dims) {
  Constant c{std::move(dims), OnnxType::f32, {}};
  for (int64_t i = 0; i < count; ++i) c.values.push_back(static_cast<double>(first + i));
  return c;
}

}  // namespace

// The first (or last) place of the largest (or smallest) value: the least of the places that hold
// it.
Status GraphImport::arg_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  int64_t axis = attribute(n, "axis", 0);
  const int rank = x.shape.rank();
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || x.scalar) return refuse(n, "an axis that does not exist");
  const int64_t extent = x.shape[static_cast<int>(axis)];
  if (axis == 0) return refuse(n, "looks for a place in the batch");
  if (extent > kMaxPlaces) return refuse(n, "too many places");
  const bool least = layer_of(n.op).function == "min",
             last = attribute(n, "select_last_index", 0) != 0;
  const std::vector<int64_t> axes = {axis};
  if (bound(x) < 0) {  // infinities have no difference
    constexpr double kFinite = std::numeric_limits<float>::max();
    LOOM_ASSIGN(x, with_number(n, "min", x, kFinite));
    LOOM_ASSIGN(x, with_number(n, "max", x, -kFinite));
  }
  LOOM_ASSIGN(const Value edge,
              emit(n, LayerKind::reduce,
                   {{"function", least ? "min" : "max"}, {"axes", axes}, {"keep", true}}, {x}));
  LOOM_ASSIGN(const Value here, least ? at_least(n, edge, x) : at_least(n, x, edge));
  std::vector<int64_t> dims(static_cast<size_t>(rank - axis), 1);
  dims[0] = extent;
  // Places that do not hold it are brought to the other end.
  LOOM_ASSIGN(const Value onehot,
              constant_stream(n, counted(extent, last ? 1 : -extent, std::move(dims))));
  LOOM_ASSIGN(const Value marked, binary(n, "mul", here, onehot));
  LOOM_ASSIGN(Value y, emit(n, LayerKind::reduce,
                            {{"function", last ? "max" : "min"},
                             {"axes", axes},
                             {"keep", attribute(n, "keepdims", 1) != 0}},
                            {marked}));
  LOOM_ASSIGN(y, with_number(n, "add", y, static_cast<double>(last ? -1 : extent)));
  nodes_[static_cast<size_t>(y.at.node)].bound = static_cast<double>(extent - 1);
  return define(n, std::move(y));
}

// places [...] to [..., extent]: 1 at the place, 0 elsewhere. Places below 0 count from the end.
Result<GraphImport::Value> GraphImport::hot(const OnnxNode& n, const Value& indices,
                                            int64_t extent) {
  if (extent < 1 || extent > kMaxPlaces) return refuse(n, "too many places");
  if (indices.shape.rank() + 1 > Shape::kMaxRank) return refuse(n, "places of too many axes");
  std::vector<int64_t> dims = axis_extents(indices.shape);
  if (indices.scalar) dims.clear();
  dims.push_back(1);
  LOOM_ASSIGN(const Value at, view(n, indices, dims));
  Value y;
  for (const int64_t first : {int64_t{0}, -extent}) {
    LOOM_ASSIGN(const Value all, constant_stream(n, counted(extent, first, {extent})));
    LOOM_ASSIGN(const Value here, equal(n, at, all, true));
    if (first == 0) {
      y = here;
    } else {
      LOOM_ASSIGN(y, binary(n, "add", y, here));
    }
  }
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return y;
}

Status GraphImport::one_hot_node(const OnnxNode& n) {
  LOOM_ASSIGN(const ConstantRef depth, constant(n, 1));
  LOOM_ASSIGN(const ConstantRef values, constant(n, 2));
  LOOM_ASSIGN(const Value* indices, value(n, 0));
  if (depth->count() != 1 || depth->dims.size() > 1 || values->dims != std::vector<int64_t>{2} ||
      indices->is_constant())
    return refuse(n, "a depth that is not one number, values that are not two, or known places");
  const auto extent = static_cast<int64_t>(depth->at(0));
  const double off = values->at(0), on = values->at(1);
  const int rank = indices->rank();
  int64_t axis = attribute(n, "axis", -1);
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank || extent < 1 || extent > 4096)
    return refuse(n, "an axis that does not exist, or a depth beyond 4096");
  Value y;
  if (ids_ && indices->at == GraphValue{}) {
    std::vector<float> table(static_cast<size_t>(extent * extent), static_cast<float>(off));
    for (int64_t i = 0; i < extent; ++i)
      table[static_cast<size_t>(i * extent + i)] = static_cast<float>(on);
    ItemParam rows{"weight", Shape{extent, extent}, shared(std::move(table))};
    rows.frozen = true;
    LOOM_ASSIGN(y, emit(n, LayerKind::embedding, {{"vocab", extent}, {"width", extent}}, {*indices},
                        {std::move(rows)}));
  } else {
    LOOM_ASSIGN(const Value at, numbers(n, 0));
    LOOM_ASSIGN(y, hot(n, at, extent));
    if (off != 0 || on != 1) {
      LOOM_ASSIGN(const Value yes, number(n, on));
      LOOM_ASSIGN(const Value no, number(n, off));
      LOOM_ASSIGN(y, chosen(n, y, yes, no));
    }
  }
  if (axis < rank) {
    std::vector<int64_t> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    order.insert(order.begin() + axis, rank);
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", order}}, {y}));
  }
  return define(n, std::move(y));
}

// Indices that are known to be inside of an axis. Outside of it a runtime stops with an error.
Status GraphImport::inside(const OnnxNode& n, const Value& indices, int64_t extent) const {
  const double most = bound(indices);
  if (most >= 0 && most < static_cast<double>(extent)) return {};
  return refuse(n, cat("computed indices that may be outside of an axis of ", extent));
}

// Rows of a constant by computed places. A product with 1 and zeros is exact.
Result<GraphImport::Value> GraphImport::looked_up(const OnnxNode& n, const Value& indices,
                                                  const Constant& table) {
  const auto wild = [](double v) { return !(std::abs(v) <= 3.4e38); };
  if (table.dims.empty() || table.count() < 1 || std::ranges::any_of(table.values, wild))
    return refuse(n, "a table without rows, or with infinite values");
  const int64_t rows = table.dims[0], width = table.count() / rows;
  if (table.count() > kMaxPlaces * 16) return refuse(n, "a table of too many values");
  LOOM_TRY(inside(n, indices, rows));
  LOOM_ASSIGN(const Value at, hot(n, indices, rows));
  Constant matrix{{rows, width}, OnnxType::f32, {}};
  double most = 0;
  for (const float v : table.floats()) {
    matrix.values.push_back(static_cast<double>(v));
    most = std::max(most, std::abs(static_cast<double>(v)));
  }
  if (!is_float(table.type) && most > 16777216) return refuse(n, "a table of too large numbers");
  const bool trained = learns(n, 0);
  LOOM_ASSIGN(const Value values, constant_stream(n, matrix, trained));
  Value from = at;
  const bool one = at.shape.rank() < 2;
  if (one) {
    LOOM_ASSIGN(from, view(n, at, {1, rows}));
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::matmul, {}, {from, values}));
  nodes_[static_cast<size_t>(y.at.node)].bound = trained ? -1 : most;
  std::vector<int64_t> dims = axis_extents(indices.shape);
  if (indices.scalar) dims.clear();
  dims.insert(dims.end(), table.dims.begin() + 1, table.dims.end());
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank)) return refuse(n, "too many axes");
  return view(n, y, dims);
}

// One number for each of computed indices, which are inside of an axis.
Status GraphImport::repeated(const OnnxNode& n, const Constant& c, int64_t extent) {
  LOOM_ASSIGN(const Value indices, numbers(n, 1));
  LOOM_TRY(inside(n, indices, extent));
  LOOM_ASSIGN(Value y, with_number(n, "mul", indices, 0));
  LOOM_ASSIGN(y, with_number(n, "add", y, c.values[0]));
  nodes_[static_cast<size_t>(y.at.node)].bound = std::abs(c.values[0]);
  return define(n, std::move(y));
}

// y[.., k, ..] = x[.., places[.., k, ..], ..] along one axis of matrices.
Status GraphImport::gather_elements_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value* from, value(n, 0));
  if (from->is_constant() && !learns(n, 0)) {  // of one number there is nothing to choose
    LOOM_ASSIGN(const ConstantRef c, constant(n, 0));
    const bool same = std::ranges::all_of(c->values, [&](double v) { return v == c->values[0]; });
    const auto along = static_cast<size_t>(attribute(n, "axis", 0) +
                                           (attribute(n, "axis", 0) < 0 ? c->dims.size() : 0));
    if (same && !c->values.empty() && along < c->dims.size())
      return repeated(n, *c, c->dims[along]);
  }
  LOOM_ASSIGN(const Value x, numbers(n, 0));
  LOOM_ASSIGN(const Value indices, numbers(n, 1));
  const int rank = x.shape.rank();
  int64_t axis = attribute(n, "axis", 0);
  if (axis < 0) axis += rank;
  if (axis != rank - 1 || rank < 2 || indices.shape.rank() != rank || rank + 1 > Shape::kMaxRank)
    return refuse(n, "is read along the last axis");
  for (int i = 0; i + 1 < rank; ++i) {
    if (indices.shape[i] != x.shape[i]) return refuse(n, "places of fewer rows than values");
  }
  LOOM_TRY(inside(n, indices, x.shape.last()));
  LOOM_ASSIGN(const Value at, hot(n, indices, x.shape.last()));
  std::vector<int64_t> dims = axis_extents(x.shape);
  dims.insert(dims.end() - 1, 1);
  LOOM_ASSIGN(const Value wide, view(n, x, dims));
  LOOM_ASSIGN(const Value none, number(n, -std::numeric_limits<double>::infinity()));
  LOOM_ASSIGN(const Value kept, chosen(n, at, wide, none));
  LOOM_ASSIGN(Value y, emit(n, LayerKind::reduce,
                            {{"function", "max"}, {"axes", std::vector<int64_t>{rank}}}, {kept}));
  nodes_[static_cast<size_t>(y.at.node)].bound = bound(x);
  return define(n, std::move(y));
}

// x / (bias + alpha / size * sum of squares of the channels around) ^ beta.
Status GraphImport::lrn_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  const int64_t size = attribute(n, "size", 1);
  if (x.shape.rank() != 4 || size < 1 || size > 4096 || size % 2 == 0 ||
      attribute_real(n, "bias", 1) <= 0 || attribute_real(n, "alpha", 1e-4f) < 0)
    return refuse(n, "is read of images, with an odd size and a bias above 0");
  const std::vector<int64_t> dims = axis_extents(x.shape);
  const int64_t positions = x.shape.count() / (dims[0] * dims[1]);
  LOOM_ASSIGN(Value y, unary(n, "square", x));
  LOOM_ASSIGN(y, view(n, y, {dims[0], 1, dims[1], positions}));
  using List = std::vector<int64_t>;
  const List around = {(size - 1) / 2, 0, size / 2, 0};
  LOOM_ASSIGN(y, emit(n, LayerKind::pool,
                      {{"kind", "average"},
                       {"kernel", List{size, 1}},
                       {"stride", List{1, 1}},
                       {"padding", around},
                       {"include_padding", true}},
                      {y}));
  LOOM_ASSIGN(y, view(n, y, dims));
  LOOM_ASSIGN(y, with_number(n, "mul", y, attribute_real(n, "alpha", 1e-4f)));
  LOOM_ASSIGN(y, with_number(n, "add", y, attribute_real(n, "bias", 1)));
  LOOM_ASSIGN(y, power(n, y, attribute_real(n, "beta", 0.75)));
  LOOM_ASSIGN(y, binary(n, "div", x, y));
  return define(n, std::move(y));
}

Status GraphImport::tile_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value y, stream(n, 0));
  LOOM_ASSIGN(const std::vector<int64_t> times, list(n, 1, "repeats", {}));
  if (times.size() != static_cast<size_t>(y.rank()))
    return refuse(n, "as many repeats as axes are needed");
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 1 || times[i] > 64 * 1024) return refuse(n, "repeats below 1, or too many");
    if (times[i] == 1) continue;
    if (y.shape[static_cast<int>(i)] == 1) {
      std::vector<int64_t> to(times.size(), 1);
      to[i] = times[i];
      LOOM_ASSIGN(y, emit(n, LayerKind::expand, {{"shape", to}}, {y}));
    } else if (times[i] <= 64) {
      const std::vector<Value> parts(static_cast<size_t>(times[i]), y);
      LOOM_ASSIGN(y, emit(n, LayerKind::concat, {{"axis", static_cast<int64_t>(i)}}, parts));
    } else {
      return refuse(n, "more than 64 repeats of an axis that is not 1");
    }
  }
  return define(n, std::move(y));
}

// Sums of the first, the first two, the first three ... values of an axis: a product with a
// triangle of ones, which is exact for integers. Its zeros would make NaN of infinities.
Status GraphImport::sum_so_far_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, numbers(n, 0));
  LOOM_ASSIGN(const ConstantRef at, constant(n, 1));
  const int rank = x.shape.rank();
  int64_t axis = at->count() == 1 ? static_cast<int64_t>(at->at(0)) : rank;
  if (axis < 0) axis += rank;
  if (axis < 1 || axis >= rank || x.scalar) return refuse(n, "adds along the batch, or no axis");
  if (bound(x) < 0) return refuse(n, "adds values that may be infinite");
  const int64_t extent = x.shape[static_cast<int>(axis)];
  if (extent * extent > kMaxPlaces * 16) return refuse(n, "adds too many values");
  const bool back = attribute(n, "reverse", 0) != 0, less = attribute(n, "exclusive", 0) != 0;
  Constant triangle{{extent, extent}, OnnxType::f32, {}};
  for (int64_t i = 0; i < extent * extent; ++i) {
    const int64_t before = back ? i % extent - i / extent : i / extent - i % extent;
    triangle.values.push_back(before > 0 || (before == 0 && !less) ? 1 : 0);
  }
  LOOM_ASSIGN(Value y, along(n, x, static_cast<int>(axis), triangle));
  nodes_[static_cast<size_t>(y.at.node)].bound = bound(x) * static_cast<double>(extent);
  return define(n, std::move(y));
}

// The triangle of the last two axes: values outside of it become 0.
Status GraphImport::trilu_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  int64_t k = 0;
  if (has_input(n, 1)) {
    LOOM_ASSIGN(const ConstantRef c, constant(n, 1));
    if (c->count() != 1) return refuse(n, "a diagonal that is not one number");
    k = static_cast<int64_t>(c->at(0));
  }
  if (x.shape.rank() < 3) return refuse(n, "is read of matrices after the batch");
  const int64_t rows = x.shape[x.shape.rank() - 2], cols = x.shape.last();
  Constant mask{{rows, cols}, OnnxType::f32, {}};
  const bool upper = attribute(n, "upper", 1) != 0;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t apart = i % cols - i / cols;
    mask.values.push_back((upper ? apart >= k : apart <= k) ? 1 : 0);
  }
  LOOM_ASSIGN(const Value test, constant_stream(n, mask));
  LOOM_ASSIGN(const Value zero, number(n, 0));
  LOOM_ASSIGN(Value y, chosen(n, test, x, zero));
  return define(n, std::move(y));
}

}  // namespace loom::core
