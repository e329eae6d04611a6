// Files whose batch is fixed at several samples, the general way. They are read as if they left it
// open. If a shape of the file holds the number of samples, it is found by the positions of samples
// in memory. Samples of a value are `inner` values apart along the axis that holds the batch. This
// separates [4 samples, 6 rows] from [6 rows, 4 samples] once both are 24 rows. See general.hpp.
#include <algorithm>
#include <span>

#include "layers/core/fields.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

// The axis whose extent follows from the batch; -1 if there is none.
int64_t GraphImport::batch_axis(const Value& v) const {
  for (int i = 0; i < v.shape.rank(); ++i) {
    if (v.shape[i] % batch_ == 0) return i;
  }
  return -1;
}

// An extent of the file that may be its batch, where what is expanded to it has `have`.
int64_t GraphImport::opened(int64_t extent, int64_t have) const {
  return fixed_ != 0 && extent == fixed_ && (have == 1 || have == batch_) ? batch_ : extent;
}

// The shape `dims` that the file gives x with an open batch; where the batch is in it: `inner`.
Result<std::vector<int64_t>> GraphImport::opened(const OnnxNode& n, const Value& x,
                                                 std::vector<int64_t> dims, int64_t& inner) const {
  std::vector<int64_t> have = axis_extents(x.shape);
  const auto axis = static_cast<size_t>(batch_axis(x));
  int64_t stride = x.inner > 0 ? x.inner : have[axis] / batch_;
  for (size_t i = axis + 1; i < have.size(); ++i) stride *= have[i];
  have[axis] = have[axis] / batch_ * fixed_;
  int64_t count = 1;
  for (const int64_t extent : have) count *= extent;
  for (int64_t& extent : dims) {
    const bool holds = extent > 0 && extent % batch_ == 0 && extent / batch_ <= count / fixed_;
    if (holds) extent = extent / batch_ * fixed_;
  }
  Constant asked{{static_cast<int64_t>(dims.size())}, OnnxType::i64, {}};
  asked.values.assign(dims.begin(), dims.end());
  OnnxNode reshape = n;
  if (n.op != "Reshape") reshape.attributes.clear();
  reshape.op = "Reshape";
  const auto shape = std::make_shared<const Constant>(std::move(asked));
  const Result<std::vector<int64_t>> held = shape_by_row(reshape, opset_, have, {nullptr, shape});
  if (!held.ok()) return refused(held.error().message);
  dims = *held;
  int64_t behind = 1;
  for (size_t i = dims.size(); i-- > 0; behind *= dims[i]) {
    if (stride < behind || stride >= behind * dims[i]) continue;
    inner = stride / behind;
    if (stride % behind != 0 || dims[i] % (inner * fixed_) != 0) break;
    int64_t all = behind;
    for (size_t k = 0; k <= i; ++k) all *= dims[k];
    if (all != count) break;
    dims[i] = dims[i] / fixed_ * batch_;
    return dims;
  }
  return refuse(n, "a shape that mixes samples of the batch, which the file fixes");
}

// Whether places are all of a value with one axis, in their order: how a trace writes a view.
bool GraphImport::takes_all(const Value& x, const std::vector<int64_t>& indices) const {
  if (fixed_ == 0 || x.shape.rank() != 1 || batch_axis(x) != 0 ||
      static_cast<int64_t>(indices.size()) != x.shape[0] / batch_ * fixed_)
    return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The result of a node has its samples along the same axis as its input, if the axis stays as long.
void GraphImport::keep_inner(const std::vector<Value>& inputs, Value& made) const {
  if (fixed_ == 0) return;
  const int64_t axis = batch_axis(made);
  if (axis < 0) return;
  for (const Value& v : inputs) {
    const int64_t from = v.inner > 0 ? batch_axis(v) : -1;
    if (from < 0 || v.shape[static_cast<int>(from)] != made.shape[static_cast<int>(axis)]) continue;
    made.inner = v.inner;
    return;
  }
}

namespace {

// Windows go along all axes but the first, and recurrences along the second.
bool is_along_axes(const LayerConfig& layer) {
  return field_index(layer, "kernel") >= 0 || layer.def->state != nullptr;
}

// The extents after an axis, multiplied.
int64_t behind(const Shape& shape, int64_t axis) {
  int64_t count = 1;
  for (auto i = static_cast<int>(axis) + 1; i < shape.rank(); ++i) count *= shape[i];
  return count;
}

// Whether a slice turns an axis around.
bool turns(const LayerConfig& slice, int64_t axis, int rank) {
  const std::vector<int64_t>& axes = slice.list(field_index(slice, "axes"));
  const std::vector<int64_t>& steps = slice.list(field_index(slice, "steps"));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t step = steps[steps.size() == axes.size() ? i : 0];
    if (step < 0 && (axes[i] + rank) % rank == axis) return true;
  }
  return false;
}

// Whether a layer certainly computes with several samples at once: `batch` is how many there are,
// and no other extent is a multiple of it.
bool mixes_samples(const LayerConfig& layer, std::span<const Shape> inputs, const Shape& made,
                   int64_t batch) {
  const LayerKind kind = layer.def->kind;
  if (kind == LayerKind::input) return false;
  const auto axis_of = [&](const Shape& shape) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] % batch == 0) return i;
    }
    return -1;
  };
  const int to = axis_of(made);
  for (const Shape& shape : inputs) {
    const int from = axis_of(shape);
    if (from < 0) continue;
    if (to < 0 || (from > 0 && is_along_axes(layer))) return true;
    if (kind == LayerKind::softmax && from + 1 == shape.rank()) return true;
    if (kind == LayerKind::slice && turns(layer, from, shape.rank())) return true;
    if (kind != LayerKind::view || shape[from] != batch) continue;
    // Samples stay `apart` values from each other, as whole parts of the new axis.
    const int64_t apart = behind(shape, from), less = behind(made, to), parts = made[to] / batch;
    if (apart % less != 0 || parts % (apart / less) != 0) return true;
  }
  const auto holds = [&](int64_t extent) { return extent % batch == 0; };
  return std::ranges::count_if(axis_extents(made), holds) > 1;
}

}  // namespace

// Finds the nodes that mix samples, by the shapes that they have for kOpenBatch samples. A node
// whose layer does not take so many is not looked at, nor are those after it.
void GraphImport::find_mixing() {
  std::vector<std::vector<Shape>> shapes(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<Shape> in;
    for (const GraphValue& v : nodes_[i].from) {
      if (v.node < 0) {
        in.push_back(sample_.after(kOpenBatch));
      } else if (shapes[static_cast<size_t>(v.node)].empty()) {
        break;
      } else {
        in.push_back(shapes[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]);
      }
    }
    if (in.size() != nodes_[i].from.size()) continue;
    Result<std::vector<Shape>> out = infer_all(nodes_[i].layer, in);
    if (!out.ok()) continue;
    nodes_[i].mixes = mixes_samples(nodes_[i].layer, in, (*out)[0], kOpenBatch);
    shapes[i] = std::move(*out);
  }
}

}  // namespace loom::core
