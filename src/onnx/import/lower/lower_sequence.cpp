// Embeddings and recurrences. See lower.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "onnx/import/lower/lower.hpp"
#include "onnx/import/one_sample.hpp"

namespace loom::core {

// The last step of a sequence.
Status Lowering::pick(const OnnxNode& n, int64_t axis, const Constant& indices) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  const std::vector<int64_t> dims = x->view.dims();
  if (axis != 1 || indices.count() != 1 || dims.size() != 3 || indices.dims.size() > 1)
    return refuse(n, "of computed values only the last step of a sequence is read");
  const auto at = static_cast<int64_t>(indices.at(0));
  if (at != -1 && at != dims[1] - 1)
    return refuse(n, cat("step ", at, " of ", dims[1], "; only the last one is read"));
  return last_step(n, *x, !indices.dims.empty());
}

// Rows of a table by the ids of the input.
Status Lowering::look_up(const OnnxNode& n, int64_t axis) {
  LOOM_ASSIGN(const PatternValue* ids, value(n, 1));
  LOOM_ASSIGN(const ConstantRef table, read_weights(n, 0));
  if (ids->item != 0 || !ids_ || ids->f != nullptr || table->dims.size() != 2 || axis != 0)
    return refuse(n, "only rows of a constant matrix by the ids of the input are read");
  LOOM_ASSIGN(const int from, rows_of_item(n, *ids));
  const int64_t vocab = table->dims[0], width = table->dims[1];
  Result<LayerConfig> layer =
      make_layer(LayerKind::embedding, {{"vocab", vocab}, {"width", width}});
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), from);
  item.params.push_back({"weight", Shape{vocab, width}, shared(table->floats())});
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  std::vector<int64_t> dims = ids->view.dims();
  dims.push_back(width);
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

// The state after the last step: the same layer without its sequence.
Status Lowering::last_step(const OnnxNode& n, const PatternValue& x, bool keep_axis) {
  LOOM_ASSIGN(const int item, rows_of_item(n, x));
  Item last = items_[static_cast<size_t>(item)];
  if (last.role != Item::Role::layer || !is_recurrent(last.layer.def->kind))
    return refuse(n, "only recurrent layers give their last step");
  last.layer = with_field(last.layer, "return_sequence", 0);
  last.out = Shape();
  LOOM_ASSIGN(const int made, add(n, std::move(last)));
  const int64_t hidden = items_[static_cast<size_t>(made)].out.last();
  std::vector<int64_t> dims = {batch_, hidden};
  if (keep_axis) dims.insert(dims.begin() + 1, 1);
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

Status Lowering::slice(const OnnxNode& n, OnnxSlice args) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  const std::vector<int64_t> dims = x->view.dims();
  const bool one = args.starts.size() == 1 && args.ends.size() == 1 && args.axes.size() == 1 &&
                   args.steps == std::vector<int64_t>{1} && has_input(n, 3) && x->item >= 0 &&
                   !dims.empty();
  if (!one) return refuse(n, "only one axis at a time, with step 1, is read");
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = args.axes[0] < 0 ? args.axes[0] + rank : args.axes[0];
  if (axis < 0 || axis >= rank) return refuse(n, "an axis that does not exist");
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const auto clamped = [&](int64_t p) {
    return std::clamp(p < 0 ? p + extent : p, int64_t{0}, extent);
  };
  const int64_t first = clamped(args.starts[0]), end = clamped(args.ends[0]);
  if (first == 0 && end == extent) return define(n, *x);
  if (axis == 1 && rank == 3 && first == extent - 1 && end == extent) return last_step(n, *x, true);
  return refuse(n, "of computed values only the last step of a sequence is read");
}

Status Lowering::recurrent(const OnnxNode& n, const OnnxRecurrence& args) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  if (x->item < 0) return refuse(n, "its input must be a sequence");
  if (args.ways != 1 || args.backwards) return refuse(n, "only one direction, forward, is read");
  if (args.activation.empty() && n.find("activations") != nullptr)
    return refuse(n, "activations that no layer has");
  for (size_t i = 4; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const ImportValue* start, input(n, i));
    const bool zeros = i != 4 && start->is_constant();
    if (!zeros) return refuse(n, "lengths, or a starting state that is computed, are not read");
    LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, i));
    if (dims != std::vector<int64_t>{1, batch_, args.hidden})
      return refuse(n, "a starting state that is not one for each sample");
  }
  PatternValue transposed = *x;
  transposed.view = transposed.view.permuted({1, 0, 2});
  LOOM_ASSIGN(const int from, rows_of_item(n, transposed));
  if (args.trained_half >= 0 && args.two_biases)
    return refuse(n, "trains one of its two biases; as a node it can");
  const int64_t hidden = args.hidden, gates = args.rows();
  Result<LayerConfig> layer = make_layer(args.gates->kind, args.fields());
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), from);
  item.params.push_back({"wih", Shape{gates, args.in}, shared(args.input_weights(0))});
  item.params.push_back({"whh", Shape{gates, hidden}, shared(args.state_weights(0))});
  item.params.push_back({"bias", Shape{gates}, shared(args.bias(0, false)), !has_input(n, 3)});
  if (args.has_state_bias())
    item.params.push_back({"bias_hh", Shape{gates}, shared(args.bias(0, true)), !args.two_biases});
  LOOM_ASSIGN(const int all, add(n, item));
  // Y: [time, 1, batch, hidden]; Y_h: [1, batch, hidden].
  PatternValue y = stream(all, {batch_, args.time, 1, hidden});
  y.view = y.view.permuted({1, 2, 0, 3});
  LOOM_TRY(define(n, std::move(y)));
  if (n.outputs.size() < 2 || n.outputs[1].empty()) return {};
  item.layer = with_field(item.layer, "return_sequence", 0);
  item.out = Shape();
  LOOM_ASSIGN(const int last, add(n, std::move(item)));
  PatternValue h = stream(last, {batch_, 1, hidden});
  h.view = h.view.permuted({1, 0, 2});
  return define(n, std::move(h), 1);
}

}  // namespace loom::core
