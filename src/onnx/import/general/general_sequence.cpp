// Recurrences in one or both directions, the general way. See general.hpp; gates and their order:
// lower_sequence.cpp. Ours run over [batch, time, width]; backwards is forwards over a sequence
// that was turned around.
#include <algorithm>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"
#include "onnx/import/one_sample.hpp"

namespace loom::core {
namespace {

using List = std::vector<int64_t>;

// Part `way` of so many equal ones.
std::vector<float> part(const std::vector<float>& all, size_t way, size_t ways) {
  const auto each = static_cast<int64_t>(all.size() / ways), at = each * static_cast<int64_t>(way);
  return {all.begin() + at, all.begin() + at + each};
}

}  // namespace

// What a recurrence asks for that no layer has.
Status GraphImport::check_recurrent(const OnnxNode& n, const ImportGates& g, int64_t time,
                                    const Constant& w, const Constant& r) {
  const auto gates = static_cast<int64_t>(g.order.size());
  const int64_t ways = w.dims.size() == 3 ? w.dims[0] : 0;
  const int64_t hidden = r.dims.size() == 3 ? r.dims[2] : 0;
  if (ways < 1 || ways > 2 || hidden < 1 || r.dims[0] != ways || w.dims[2] < 1 ||
      w.dims[1] != gates * hidden || r.dims[1] != gates * hidden ||
      attribute(n, "hidden_size", hidden) != hidden)
    return refuse(n, "weights that do not fit each other, or its hidden_size");
  const std::string direction = attribute_text(n, "direction", "forward");
  if ((direction == "bidirectional") != (ways == 2) ||
      (ways == 1 && direction != "forward" && direction != "reverse"))
    return refuse(n, "a direction that does not fit its weights");
  const auto all = [](const Constant& c, double value) {
    return std::ranges::all_of(c.values, [&](double v) { return v == value; });
  };
  for (size_t i = 4; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const Value* v, value(n, i));
    if (!v->is_constant() && (i == 5 || i == 6)) {
      if (v->shape == Shape{ways, batch_, hidden}) continue;
      return refuse(n,
                    cat("a starting state of ", v->shape.str(), "; read is one for each sample"));
    }
    Result<ConstantRef> known =
        v->is_constant() ? constant(n, i) : Result<ConstantRef>(ConstantRef());
    if (!known.ok() || *known == nullptr || i > 6 ||
        !all(**known, i == 4 ? static_cast<double>(time) : 0))
      return refuse(n,
                    "lengths, peepholes, or a starting state of other constants than zero, are "
                    "not read");
  }
  if (g.kind == LayerKind::gru && attribute(n, "linear_before_reset", 0) == 0)
    return refuse(n, "only linear_before_reset 1 is read (the form of PyTorch and cuDNN)");
  const OnnxAttribute* given = n.find("activations");
  const std::vector<std::string> usual = g.kind == LayerKind::lstm
                                             ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                             : std::vector<std::string>{"Sigmoid", "Tanh"};
  bool plain = given == nullptr;
  if (given != nullptr && g.kind == LayerKind::rnn)
    plain = ways == 1 ? !rnn_activation(n).empty()
                      : given->texts == std::vector<std::string>{"Tanh", "Tanh"};
  if (given != nullptr && g.kind != LayerKind::rnn) {
    std::vector<std::string> want = usual;
    if (ways == 2) want.insert(want.end(), usual.begin(), usual.end());
    plain = given->texts == want;
  }
  if (!plain || n.find("clip") != nullptr || attribute(n, "input_forget", 0) != 0)
    return refuse(n, "activations, clip or input_forget that no layer has");
  return {};
}

// The states that direction `way` begins with, [batch, hidden], one or h and c; none where they are
// zero.
Result<std::vector<GraphImport::Value>> GraphImport::starting_states(const OnnxNode& n, bool two,
                                                                     size_t way, int64_t hidden) {
  std::vector<Value> states(two ? 2 : 1);
  int known = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    if (!has_input(n, 5 + i)) continue;
    LOOM_ASSIGN(const Value* given, value(n, 5 + i));
    if (given->is_constant()) continue;
    LOOM_ASSIGN(Value all, stream(n, 5 + i));
    const auto at = static_cast<int64_t>(way);
    if (all.shape[0] > 1) {
      LOOM_ASSIGN(all,
                  emit(n, LayerKind::slice,
                       {{"starts", List{at}}, {"ends", List{at + 1}}, {"axes", List{0}}}, {all}));
    }
    LOOM_ASSIGN(states[i], view(n, all, {batch_, hidden}));
    known += 1;
  }
  if (known == 0) return std::vector<Value>();
  for (size_t i = 0; known == 1 && i < states.size(); ++i) {  // the other one is zero
    const Value& other = states[1 - i];
    if (states[i].shape.rank() == 0 && two) {
      LOOM_ASSIGN(states[i], with_number(n, "mul", other, 0));
    }
  }
  return states;
}

Status GraphImport::recurrent_node(const OnnxNode& n) {
  const std::vector<ImportGates> table = gate_table();
  const ImportGates& g = *std::ranges::find_if(
      table, [&](const ImportGates& row) { return row.function == layer_of(n.op).function; });
  LOOM_ASSIGN(Value x, stream(n, 0));
  LOOM_ASSIGN(const ConstantRef w, constant(n, 1));
  LOOM_ASSIGN(const ConstantRef r, constant(n, 2));
  if (x.shape.rank() != 3) return refuse(n, "its input must be a sequence");
  if (attribute(n, "layout", 0) != 0)
    return refuse(n, "layout 1 (the batch first) is not read; export with layout 0 and Transpose");
  LOOM_ASSIGN(x, emit(n, LayerKind::transpose, {{"axes", List{1, 0, 2}}}, {x}));
  const int64_t batch = x.shape[0], time = x.shape[1];
  if (batch != batch_) {
    refusal_ = Refusal::along_batch;
    return refuse(n, kAlongBatch);
  }
  LOOM_TRY(check_recurrent(n, g, time, *w, *r));
  const auto ways = static_cast<size_t>(w->dims[0]);
  const int64_t in = w->dims[2], hidden = r->dims[2];
  const auto gates = static_cast<int64_t>(g.order.size());
  const auto block = static_cast<size_t>(hidden), count = static_cast<size_t>(gates * hidden);
  std::vector<float> biases(2 * count * ways);
  if (has_input(n, 3)) {
    LOOM_ASSIGN(const ConstantRef b, constant(n, 3));
    if (b->dims != List{static_cast<int64_t>(ways), static_cast<int64_t>(2 * count)})
      return refuse(n, "biases of the wrong size");
    biases = b->floats();
  }
  const int half = has_input(n, 3) ? origins_.trained_half(n.inputs[3]) : -1;
  const bool two_biases = has_input(n, 3) && (half != 0 || has_second_bias(biases, count));
  std::vector<Field> fields = {{"in", in}, {"hidden", hidden}};
  if (g.kind != LayerKind::gru) fields.emplace_back("state_bias", two_biases);
  if (g.kind == LayerKind::rnn)
    fields.emplace_back("activation", ways == 1 ? rnn_activation(n) : "tanh");
  const std::vector<Field> turn = {{"starts", List{-1}},
                                   {"ends", List{-(int64_t{1} << 52)}},
                                   {"axes", List{1}},
                                   {"steps", List{-1}}};
  const bool backwards = attribute_text(n, "direction", "forward") == "reverse";
  const auto floats_w = w->floats(), floats_r = r->floats();
  const bool two = g.kind == LayerKind::lstm;
  const bool ends = two && n.outputs.size() > 2 && !n.outputs[2].empty();
  if (ends) fields.emplace_back("final_state", true);
  std::vector<Value> sequences, lasts, cells;
  for (size_t way = 0; way < ways; ++way) {
    const bool back = backwards || way == 1;
    Value from = x;
    if (back) {
      LOOM_ASSIGN(from, emit(n, LayerKind::slice, turn, {x}));
    }
    const std::vector<float> bias = part(biases, way, ways);
    std::vector<float> first = reordered(bias, 0, block, g.order);
    const std::vector<float> second = reordered(bias, count, block, g.order);
    const auto wide = block * static_cast<size_t>(in);
    std::vector<ItemParam> params = {
        param(n, 1, "wih", Shape{gates * hidden, in},
              reordered(part(floats_w, way, ways), 0, wide, g.order)),
        param(n, 2, "whh", Shape{gates * hidden, hidden},
              reordered(part(floats_r, way, ways), 0, block * block, g.order))};
    params.push_back(param(n, 3, "bias", Shape{gates * hidden}, std::move(first)));
    params.back().frozen |= half == 1;
    if (two_biases || g.kind == LayerKind::gru) {
      params.push_back(param(n, 3, "bias_hh", Shape{gates * hidden}, second));
      params.back().frozen |= half == 0;
    }
    LOOM_ASSIGN(const std::vector<Value> states, starting_states(n, two, way, hidden));
    std::vector<Field> own = fields;
    if (!states.empty()) own.emplace_back("initial_state", true);
    std::vector<Value> inputs = {from};
    inputs.insert(inputs.end(), states.begin(), states.end());
    LOOM_ASSIGN(Value y, emit(n, g.kind, own, inputs, std::move(params)));
    if (ends) {
      Value cell = y;
      cell.at.output = 2;
      cell.shape = Shape{batch, hidden};
      LOOM_ASSIGN(cell, view(n, cell, {batch, 1, hidden}));
      cells.push_back(cell);
    }
    LOOM_ASSIGN(Value last,
                emit(n, LayerKind::slice,
                     {{"starts", List{time - 1}}, {"ends", List{time}}, {"axes", List{1}}}, {y}));
    if (back) {
      LOOM_ASSIGN(y, emit(n, LayerKind::slice, turn, {y}));
    }
    LOOM_ASSIGN(y, view(n, y, {batch, time, 1, hidden}));
    sequences.push_back(y);
    lasts.push_back(last);
  }
  return define_recurrent(n, {sequences, lasts, cells});
}

// Sequences [batch, time, 1, hidden] and last states [batch, 1, hidden], those of cells too, of
// each direction as the outputs of the node: [time, directions, batch, hidden] and [directions,
// batch, hidden].
Status GraphImport::define_recurrent(const OnnxNode& n,
                                     const std::array<std::vector<Value>, 3>& outputs) {
  for (size_t i = 0; i < n.outputs.size() && i < outputs.size(); ++i) {
    if (n.outputs[i].empty() || outputs[i].empty()) continue;
    const bool last = i > 0;
    const std::vector<Value>& parts = outputs[i];
    Value y = parts[0];
    if (parts.size() > 1) {
      LOOM_ASSIGN(y, emit(n, LayerKind::concat, {{"axis", int64_t{last ? 1 : 2}}}, parts));
    }
    const List order = last ? List{1, 0, 2} : List{1, 2, 0, 3};
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", order}}, {y}));
    LOOM_TRY(define(n, std::move(y), i));
  }
  return {};
}

}  // namespace loom::core
