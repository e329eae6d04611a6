// LSTMs over whole sequences, in one direction or both. See lower.hpp. TFLite has its gates in the
// order input, forget, cell, output, ONNX input, output, forget, cell.
#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kTanhActivation = 4;

}  // namespace

// Four gates under each other, as one direction of ONNX: an axis of 1 in front.
Result<TfliteGraph::Name> TfliteGraph::stacked(const Names& gates) {
  LOOM_ASSIGN(const Name all,
              add("Concat", {gates[0], gates[3], gates[1], gates[2]}, {{"axis", 0}}));
  return add("Unsqueeze", {all, list({0})});
}

// What ONNX's LSTM has no place for. `first`: where the gates begin; `states`: its two states.
Status TfliteGraph::check_lstm(size_t first, size_t states) const {
  for (size_t i = 0; i < 8; ++i) {
    if (!has(first + i)) return refuse("a gate is left out (coupled input and forget gates)");
  }
  for (size_t i = 8; i < 11; ++i) {
    if (has(first + i)) return refuse("peepholes are not read");
  }
  if (has(first + 15) || has(first + 16)) return refuse("a projection is not read");
  for (size_t i = 0; i < 2; ++i) {
    const bool there = has(states + i);
    const auto tensor = there ? static_cast<size_t>(op_->inputs[states + i]) : 0;
    if (there && (!file_.tensors[tensor].variable || values_[tensor].made))
      return refuse("a starting state that is given is not read");
  }
  if (whole(0) != kTanhActivation) return refuse("an activation other than tanh is not read");
  if (option(1) != 0 || option(2) != 0) return refuse("clipped cells are not read");
  return {};
}

// Weights, recurrent weights and biases of one direction.
Result<TfliteGraph::Names> TfliteGraph::one_way(size_t first) {
  Names out;
  LOOM_ASSIGN(const List w, dims(first + 1));
  if (w.size() != 2) return refuse("weights that are no matrices");
  for (size_t part = 0; part < 2; ++part) {
    Names gates;
    for (size_t g = 0; g < 4; ++g) {
      LOOM_ASSIGN(const List have, dims(first + 4 * part + g));
      if (have.size() != 2 || have[0] != w[0] || (part == 1 && have[1] != w[0]))
        return refuse("weights that do not fit each other");
      LOOM_ASSIGN(gates.emplace_back(), in(first + 4 * part + g));
    }
    LOOM_ASSIGN(out.emplace_back(), stacked(gates));
  }
  const std::vector<float> zeros(static_cast<size_t>(w[0]), 0.0f);
  const Name none = keep(onnx_tensor("", {w[0]}, std::span<const float>(zeros)));
  Names biases;
  for (size_t g = 0; g < 4; ++g) {
    biases.push_back(none);
    if (!has(first + 11 + g)) continue;
    LOOM_ASSIGN(biases.back(), bias(first + 11 + g, w[0]));
  }
  LOOM_ASSIGN(const Name all,
              add("Concat", {biases[0], biases[3], biases[1], biases[2], none, none, none, none},
                  {{"axis", 0}}));
  LOOM_ASSIGN(out.emplace_back(), add("Unsqueeze", {all, list({0})}));
  return out;
}

// All hidden states: [time, directions, batch, width].
Result<TfliteGraph::Name> TfliteGraph::ran(Name x, const std::vector<Names>& ways,
                                           std::string_view direction, int64_t width) {
  Names inputs = {x};
  for (size_t part = 0; part < 3; ++part) {
    if (ways.size() == 1) {
      inputs.push_back(ways[0][part]);
      continue;
    }
    LOOM_ASSIGN(inputs.emplace_back(),
                add("Concat", {ways[0][part], ways[1][part]}, {{"axis", 0}}));
  }
  return add("LSTM", inputs, {{"hidden_size", width}, text_of("direction", direction)});
}

Status TfliteGraph::lstm() {
  LOOM_TRY(check_lstm(1, 18));
  for (size_t i = 20; i < op_->inputs.size(); ++i) {
    if (has(i)) return refuse("layer norms of gates are not read");
  }
  LOOM_ASSIGN(List x, dims(0));
  LOOM_ASSIGN(const List w, dims(1));
  if (x.size() != 3 || w.size() != 2 || w[1] != x[2])
    return refuse("an input that is no sequence, or weights that do not fit it");
  const bool by_time = flag(3);
  LOOM_ASSIGN(Name y, in(0));
  if (!by_time) {
    LOOM_ASSIGN(y, moved(y, {1, 0, 2}));
  }
  LOOM_ASSIGN(const Names way, one_way(1));
  LOOM_ASSIGN(y, ran(y, {way}, "forward", w[0]));
  LOOM_ASSIGN(y, add("Squeeze", {y, list({1})}));
  if (!by_time) {
    LOOM_ASSIGN(y, moved(y, {1, 0, 2}));
  }
  return define(0, y, {x[0], x[1], w[0]});
}

Status TfliteGraph::both_ways_lstm() {
  LOOM_TRY(check_lstm(1, 35));
  LOOM_TRY(check_lstm(18, 37));
  for (size_t i = 39; i < op_->inputs.size(); ++i) {
    if (has(i)) return refuse("a second input is not read");
  }
  LOOM_ASSIGN(List x, dims(0));
  LOOM_ASSIGN(const List w, dims(1));
  LOOM_ASSIGN(const List back, dims(18));
  if (x.size() != 3 || w.size() != 2 || w[1] != x[2] || back != w)
    return refuse("an input that is no sequence, or directions of different sizes");
  const bool by_time = flag(4), merged = flag(3);
  if (op_->outputs.size() != (merged ? 1 : 2)) return refuse("another number of outputs");
  LOOM_ASSIGN(Name y, in(0));
  if (!by_time) {
    LOOM_ASSIGN(y, moved(y, {1, 0, 2}));
  }
  LOOM_ASSIGN(const Names forward, one_way(1));
  LOOM_ASSIGN(const Names backward, one_way(18));
  LOOM_ASSIGN(y, ran(y, {forward, backward}, "bidirectional", w[0]));
  // [time, direction, batch, width] to [time, batch, direction, width], or with the batch in front.
  LOOM_ASSIGN(y, moved(y, by_time ? List{0, 2, 1, 3} : List{2, 0, 1, 3}));
  if (merged) {
    LOOM_ASSIGN(y, shaped(y, {x[0], x[1], 2 * w[0]}));
    return define(0, y, {x[0], x[1], 2 * w[0]});
  }
  LOOM_ASSIGN(Names ways, add_many("Split", {y, list({1, 1})}, {{"axis", 2}}, 2));
  for (size_t i = 0; i < 2; ++i) {
    LOOM_ASSIGN(y, add("Squeeze", {ways[i], list({2})}));
    LOOM_TRY(define(i, y, {x[0], x[1], w[0]}));
  }
  return {};
}

}  // namespace loom::core
