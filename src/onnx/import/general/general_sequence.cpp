// Recurrences in one or both directions as nodes. See general.hpp; gates and their order:
// reader/recurrent.cpp. Ours run over [batch, time, width]; backwards is forwards over a sequence
// that was turned around.
#include <algorithm>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"
#include "onnx/import/one_sample.hpp"

namespace loom::core {
namespace {

using List = std::vector<int64_t>;

}  // namespace

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

Status GraphImport::recurrent(const OnnxNode& n, const OnnxRecurrence& args) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  LOOM_ASSIGN(x, emit(n, LayerKind::transpose, {{"axes", List{1, 0, 2}}}, {x}));
  const int64_t batch = batch_, time = args.time, hidden = args.hidden, gates = args.rows();
  std::vector<Field> fields = args.fields();
  const std::vector<Field> turn = {{"starts", List{-1}},
                                   {"ends", List{-(int64_t{1} << 52)}},
                                   {"axes", List{1}},
                                   {"steps", List{-1}}};
  const bool two = args.has_cell();
  const bool ends = two && n.outputs.size() > 2 && !n.outputs[2].empty();
  if (ends) fields.emplace_back("final_state", true);
  std::vector<Value> sequences, lasts, cells;
  for (size_t way = 0; way < args.ways; ++way) {
    const bool back = args.backwards || way == 1;
    Value from = x;
    if (back) {
      LOOM_ASSIGN(from, emit(n, LayerKind::slice, turn, {x}));
    }
    std::vector<ItemParam> params = {
        param(n, 1, "wih", Shape{gates, args.in}, args.input_weights(way)),
        param(n, 2, "whh", Shape{gates, hidden}, args.state_weights(way)),
        param(n, 3, "bias", Shape{gates}, args.bias(way, false))};
    params.back().frozen |= args.trained_half == 1;
    if (args.has_state_bias()) {
      params.push_back(param(n, 3, "bias_hh", Shape{gates}, args.bias(way, true)));
      params.back().frozen |= args.trained_half == 0;
    }
    LOOM_ASSIGN(const std::vector<Value> states, starting_states(n, two, way, hidden));
    std::vector<Field> own = fields;
    if (!states.empty()) own.emplace_back("initial_state", true);
    std::vector<Value> inputs = {from};
    inputs.insert(inputs.end(), states.begin(), states.end());
    LOOM_ASSIGN(Value y, emit(n, args.gates->kind, own, inputs, std::move(params)));
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
