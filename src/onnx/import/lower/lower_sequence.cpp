// Embeddings and recurrences. ONNX keeps the time axis first and the gates of an LSTM in the order
// i o f c (ours: i f g o, g being c), those of a GRU as z r h (ours: r z n). See lower.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "onnx/import/lower/lower.hpp"
#include "onnx/import/one_sample.hpp"

namespace loom::core {

bool has_second_bias(const std::vector<float>& biases, size_t count) {
  for (size_t i = 0; i < biases.size(); ++i) {
    if (i / count % 2 == 1 && biases[i] != 0) return true;
  }
  return false;
}

std::vector<ImportGates> gate_table() {
  return {{"lstm", LayerKind::lstm, {0, 2, 3, 1}},
          {"gru", LayerKind::gru, {1, 0, 2}},
          {"rnn", LayerKind::rnn, {0}}};
}

std::vector<float> reordered(const std::vector<float>& all, size_t first, size_t block,
                             const std::vector<size_t>& order) {
  std::vector<float> out;
  for (const size_t from : order) {
    const auto begin = all.begin() + static_cast<int64_t>(first + from * block);
    out.insert(out.end(), begin, begin + static_cast<int64_t>(block));
  }
  return out;
}

std::string rnn_activation(const OnnxNode& n) {
  const OnnxAttribute* a = n.find("activations");
  if (a != nullptr && a->texts.size() != 1) return "";
  const std::string name = a != nullptr ? a->texts[0] : "Tanh";
  const OnnxAttribute* alphas = n.find("activation_alpha");
  const OnnxAttribute* betas = n.find("activation_beta");
  const auto is = [](const OnnxAttribute* given, float value, bool otherwise) {
    return given == nullptr || given->reals.empty() ? otherwise : given->reals[0] == value;
  };
  const std::string function(layer_of(name).function);
  constexpr std::string_view kPlain[] = {"tanh", "relu", "sigmoid", "softplus"};
  if (std::ranges::find(kPlain, function) != std::end(kPlain)) return function;
  if (function == "leaky_relu" && is(alphas, 0.01f, true)) return function;
  if (function == "elu" && is(alphas, 1.0f, true)) return function;
  if (name == "Affine" && is(alphas, 1.0f, false) && is(betas, 0.0f, true)) return "linear";
  return "";
}

// Rows of a table by ids, or the last step of a sequence.
Status Lowering::gather_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  if (!x->is_constant()) {
    LOOM_ASSIGN(const ConstantRef index, constant(n, 1));
    const std::vector<int64_t> dims = x->view.dims();
    if (attribute(n, "axis", 0) != 1 || index->count() != 1 || dims.size() != 3 ||
        index->dims.size() > 1)
      return refuse(n, "of computed values only the last step of a sequence is read");
    const auto at = static_cast<int64_t>(index->at(0));
    if (at != -1 && at != dims[1] - 1)
      return refuse(n, cat("step ", at, " of ", dims[1], "; only the last one is read"));
    return last_step(n, *x, !index->dims.empty());
  }
  LOOM_ASSIGN(const PatternValue* ids, input(n, 1));
  LOOM_ASSIGN(const ConstantRef table, weights(n, 0));
  if (ids->item != 0 || !ids_ || ids->f != nullptr || table->dims.size() != 2 ||
      attribute(n, "axis", 0) != 0)
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
  const bool recurrent = last.role == Item::Role::layer &&
                         std::ranges::any_of(gate_table(), [&](const ImportGates& g) {
                           return last.layer.def->kind == g.kind;
                         });
  if (!recurrent) return refuse(n, "only recurrent layers give their last step");
  last.layer = with_field(last.layer, "return_sequence", 0);
  last.out = Shape();
  LOOM_ASSIGN(const int made, add(n, std::move(last)));
  const int64_t hidden = items_[static_cast<size_t>(made)].out.last();
  std::vector<int64_t> dims = {batch_, hidden};
  if (keep_axis) dims.insert(dims.begin() + 1, 1);
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

Status Lowering::slice_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  std::vector<int64_t> v[4];
  for (size_t i = 0; i < 4; ++i) {
    v[i] = {1};
    if (i >= 2 && !has_input(n, i + 1)) continue;
    LOOM_ASSIGN(v[i], list(n, i + 1));
  }
  const std::vector<int64_t> dims = x->view.dims();
  const bool one = v[0].size() == 1 && v[1].size() == 1 && v[2].size() == 1 && v[3].size() == 1 &&
                   has_input(n, 3) && v[3][0] == 1 && x->item >= 0 && !dims.empty();
  if (!one) return refuse(n, "only one axis at a time, with step 1, is read");
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = v[2][0] < 0 ? v[2][0] + rank : v[2][0];
  if (axis < 0 || axis >= rank) return refuse(n, "an axis that does not exist");
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const auto clamped = [&](int64_t p) {
    return std::clamp(p < 0 ? p + extent : p, int64_t{0}, extent);
  };
  const int64_t first = clamped(v[0][0]), end = clamped(v[1][0]);
  if (first == 0 && end == extent) return define(n, *x);
  if (axis == 1 && rank == 3 && first == extent - 1 && end == extent) return last_step(n, *x, true);
  return refuse(n, "of computed values only the last step of a sequence is read");
}

Status Lowering::recurrent_node(const OnnxNode& n) {
  const std::vector<ImportGates> table = gate_table();
  const ImportGates& g = *std::ranges::find_if(
      table, [&](const ImportGates& row) { return row.function == layer_of(n.op).function; });
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  LOOM_ASSIGN(const ConstantRef w, weights(n, 1));
  LOOM_ASSIGN(const ConstantRef r, weights(n, 2));
  if (attribute(n, "layout", 0) != 0)
    return refuse(n, "layout 1 (the batch first) is not read; export with layout 0 and Transpose");
  if (x->item < 0 || x->view.axes.size() != 3) return refuse(n, "its input must be a sequence");
  if (attribute_text(n, "direction", "forward") != "forward" || w->dims.size() != 3 ||
      r->dims.size() != 3 || w->dims[0] != 1 || r->dims[0] != 1)
    return refuse(n, "only one direction, forward, is read");
  PatternValue transposed = *x;
  transposed.view = transposed.view.permuted({1, 0, 2});
  const auto gates = static_cast<int64_t>(g.order.size());
  const int64_t hidden = r->dims[2], in = w->dims[2], time = transposed.view.dims()[1];
  if (transposed.view.dims()[0] != batch_) {
    refusal_ = Refusal::along_batch;
    return refuse(n, kAlongBatch);
  }
  if (attribute(n, "hidden_size", hidden) != hidden)
    return refuse(n, "a hidden_size that is not that of its weights");
  if (hidden < 1 || in < 1 || w->dims[1] != gates * hidden || r->dims[1] != gates * hidden)
    return refuse(n, "weights that do not fit each other");
  for (size_t i = 4; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    if (i > 6) return refuse(n, "peepholes are not read");
    const Result<ConstantRef> start = i == 4 ? Result<ConstantRef>(ConstantRef()) : constant(n, i);
    const bool zeros = i != 4 && start.ok() &&
                       (*start)->dims == std::vector<int64_t>{1, batch_, hidden} &&
                       std::ranges::all_of((*start)->values, [](double v) { return v == 0; });
    if (!zeros) return refuse(n, "lengths, or a starting state that is not zero, are not read");
  }
  if (g.kind == LayerKind::gru && attribute(n, "linear_before_reset", 0) == 0)
    return refuse(n, "only linear_before_reset 1 is read (the form of PyTorch and cuDNN)");
  const std::string activation = g.kind == LayerKind::rnn ? rnn_activation(n) : "";
  if ((g.kind == LayerKind::rnn && activation.empty()) || n.find("clip") != nullptr ||
      (g.kind != LayerKind::rnn && n.find("activations") != nullptr) ||
      attribute(n, "input_forget", 0) != 0)
    return refuse(n, "activations, clip or input_forget that no layer has");
  LOOM_ASSIGN(const int from, rows_of_item(n, transposed));
  const auto block = static_cast<size_t>(hidden), count = static_cast<size_t>(gates * hidden);
  std::vector<float> bias(2 * count);
  if (has_input(n, 3)) {
    LOOM_ASSIGN(const ConstantRef b, weights(n, 3));
    LOOM_TRY(shaped(n, *b, {1, static_cast<int64_t>(2 * count)}, "biases of the wrong size"));
    bias = b->floats();
  }
  std::vector<float> first = reordered(bias, 0, block, g.order);
  const std::vector<float> second = reordered(bias, count, block, g.order);
  std::vector<Field> fields = {{"in", in}, {"hidden", hidden}};
  if (g.kind == LayerKind::rnn) fields.emplace_back("activation", activation);
  const int half = has_input(n, 3) ? origins_.trained_half(n.inputs[3]) : -1;
  const bool biased = has_input(n, 3) && (half != 0 || has_second_bias(bias, count));
  if (half >= 0 && biased) return refuse(n, "trains one of its two biases; as a node it can");
  if (g.kind != LayerKind::gru) fields.emplace_back("state_bias", biased);
  Result<LayerConfig> layer = make_layer(g.kind, fields);
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), from);
  item.params.push_back(
      {"wih", Shape{gates * hidden, in},
       shared(reordered(w->floats(), 0, block * static_cast<size_t>(in), g.order))});
  item.params.push_back({"whh", Shape{gates * hidden, hidden},
                         shared(reordered(r->floats(), 0, block * block, g.order))});
  item.params.push_back({"bias", Shape{gates * hidden}, shared(first), !has_input(n, 3)});
  if (biased || g.kind == LayerKind::gru)
    item.params.push_back({"bias_hh", Shape{gates * hidden}, shared(second), !biased});
  LOOM_ASSIGN(const int all, add(n, item));
  // Y: [time, 1, batch, hidden]; Y_h: [1, batch, hidden].
  PatternValue y = stream(all, {batch_, time, 1, hidden});
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
