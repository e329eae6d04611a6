// Flatten, Reshape, Permute: the values of a sample in another order, or as an array of other
// extents; one copy each.
#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

// A batch of samples with these extents.
Shape batch_of(int64_t batch, const std::vector<int64_t>& sample) {
  Shape shape;
  for (size_t k = sample.size(); k-- > 0;) shape = shape.after(sample[k]);
  return shape.after(batch);
}

// The values of the input in order, in memory of their own: observers and gradient readers tell
// layers apart by their outputs.
Result<Tensor> under(ForwardCall& call, const Shape& shape) {
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().copy(reshape(call.x(), y)));
  return y;
}

using fields::flatten::kFirst;

Result<Shape> infer_flatten(const LayerConfig& c, const Shape& in) {
  const int first = static_cast<int>(c.integer(kFirst));
  if (in.rank() <= first) {
    return invalid(cat("Flatten: input ", in.str(), " has no axis ", first,
                       ": first must be below its ", in.rank(), " axes"));
  }
  std::vector<int64_t> sample;
  int64_t rest = 1;
  for (int axis = 1; axis < in.rank(); ++axis) {
    if (axis < first) sample.push_back(in[axis]);
    if (axis >= first) rest *= in[axis];
  }
  sample.push_back(rest);
  return batch_of(in[0], sample);
}

Result<Tensor> forward_flatten(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer_flatten(call.config(), call.x().shape));
  return under(call, shape);
}

LayerExample example_flatten() {
  return {Shape{2, 5, 3},
          {{LayerKind::cnn2, {{"channels", 2}, {"filters", 3}, {"padding", 1}}},
           {LayerKind::flatten},
           sketch_dense(45, 3)},
          3};
}

using fields::reshape::kShape;

Result<Shape> infer_reshape(const LayerConfig& c, const Shape& in) {
  std::vector<int64_t> sample = c.list(kShape);
  if (sample.empty() || sample.size() >= static_cast<size_t>(Shape::kMaxRank)) {
    return invalid(cat("Reshape: shape has ", sample.size(), " extents, must have 1 to ",
                       Shape::kMaxRank - 1));
  }
  int64_t values = 1, known = 1;
  for (int axis = 1; axis < in.rank(); ++axis) values *= in[axis];
  const auto open = std::find(sample.begin(), sample.end(), -1);
  for (auto extent = sample.begin(); extent != sample.end(); ++extent) {
    if (extent == open) continue;
    if (*extent < 1) return invalid("Reshape: only one extent of shape may be -1, and none 0");
    if (__builtin_mul_overflow(known, *extent, &known)) known = values + 1;
  }
  const bool fits = open == sample.end() ? known == values : known > 0 && values % known == 0;
  if (in.rank() < 1 || !fits) {
    return invalid(cat("Reshape: the ", values, " values of a sample of ", in.str(),
                       " do not fill ", batch_of(in.rank() < 1 ? 1 : in[0], sample).str()));
  }
  if (open != sample.end()) *open = values / known;
  return batch_of(in[0], sample);
}

Result<Tensor> forward_reshape(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer_reshape(call.config(), call.x().shape));
  return under(call, shape);
}

LayerExample example_reshape() {
  return {Shape{30},
          {{LayerKind::reshape, {{"shape", std::vector<int64_t>{2, -1, 3}}}},
           {LayerKind::cnn2, {{"channels", 2}, {"filters", 3}, {"padding", 1}}},
           sketch_dense(45, 3)},
          3};
}

using fields::permute::kAxes;

// The axes with the batch first.
Result<std::vector<int>> permuted_axes(const LayerConfig& c, const Shape& in) {
  const std::vector<int64_t>& axes = c.list(kAxes);
  std::vector<int> all = {0};
  std::vector<bool> visited(static_cast<size_t>(std::max(in.rank(), 1)), false);
  bool sound = static_cast<int64_t>(axes.size()) + 1 == in.rank();
  for (const int64_t axis : axes) {
    sound = sound && axis + 1 < in.rank() && !visited[static_cast<size_t>(axis)];
    if (sound) visited[static_cast<size_t>(axis)] = true;
    all.push_back(static_cast<int>(axis) + 1);
  }
  if (sound) return all;
  return invalid(cat("Permute: axes must name each axis of a sample of ", in.str(),
                     " once, counted from 0 without the batch"));
}

Result<Shape> infer_permute(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const std::vector<int> axes, permuted_axes(c, in));
  Shape out = in;
  for (int k = 0; k < in.rank(); ++k) out[k] = in[axes[static_cast<size_t>(k)]];
  return out;
}

Result<Tensor> forward_permute(ForwardCall& call) {
  const Shape& in = call.x().shape;
  LOOM_ASSIGN(const std::vector<int> axes, permuted_axes(call.config(), in));
  LOOM_ASSIGN(const Shape shape, infer_permute(call.config(), in));
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().copy(move(call.x(), Walk(in).permuted(axes), y, Walk(shape))));
  return y;
}

LayerExample example_permute() {
  return {Shape{3, 5, 2},
          {{LayerKind::permute, {{"axes", std::vector<int64_t>{2, 0, 1}}}},
           {LayerKind::cnn2, {{"channels", 2}, {"filters", 3}, {"padding", 1}}},
           {LayerKind::permute, {{"axes", std::vector<int64_t>{1, 2, 0}}}},
           sketch_dense(45, 3)},
          3};
}

}  // namespace

extern const LayerDef kFlatten, kReshape, kPermute;
const LayerDef kFlatten = {.kind = LayerKind::flatten,
                           .name = "Flatten",
                           .fields = fields::flatten::kFields,
                           .infer = infer_flatten,
                           .forward = forward_flatten,
                           .example = example_flatten};
const LayerDef kReshape = {.kind = LayerKind::reshape,
                           .name = "Reshape",
                           .fields = fields::reshape::kFields,
                           .infer = infer_reshape,
                           .forward = forward_reshape,
                           .example = example_reshape};
const LayerDef kPermute = {.kind = LayerKind::permute,
                           .name = "Permute",
                           .fields = fields::permute::kFields,
                           .infer = infer_permute,
                           .forward = forward_permute,
                           .example = example_permute};

}  // namespace loom::core
