// LSTMs over whole sequences, in one direction or both. See lower.hpp. TFLite has its gates in the
// order input, forget, cell, output, ONNX input, output, forget, cell.
#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kTanhActivation = 4;

}  // namespace

// Four gates under each other, as one direction of ONNX: an axis of 1 in front.
TfliteGraph::Name TfliteGraph::stacked(const Names& gates) {
  const Name all = add("Concat", {gates[0], gates[3], gates[1], gates[2]}, {{"axis", 0}});
  return add("Unsqueeze", {all, list({0})});
}

// The part of a recurrent operator that ONNX's LSTM lacks. `first`: the index of the gates;
// `states`: its two states.
void TfliteGraph::check_lstm(size_t first, size_t states) {
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
  if (integer_option(0) != kTanhActivation)
    return refuse("an activation other than tanh is not read");
  if (option(1) != 0 || option(2) != 0) return refuse("clipped cells are not read");
}

// Weights, recurrent weights and biases of one direction. Empty where it failed.
TfliteGraph::Names TfliteGraph::one_way(size_t first) {
  Names out;
  const List w = dims(first + 1);
  if (w.size() != 2 || w[0] < 1 || w[0] > left_) refuse("weights that are not matrices");
  for (size_t i = 0; i < 8 && !failed(); ++i) {
    const List& have = dims(first + i);
    if (have.size() != 2 || have[0] != w[0] || have[1] != (i < 4 ? w[1] : w[0]))
      refuse("weights that do not fit each other");
  }
  if (failed()) return out;
  for (size_t part = 0; part < 2; ++part) {
    Names gates;
    for (size_t g = 0; g < 4; ++g) gates.push_back(in(first + 4 * part + g));
    out.push_back(stacked(gates));
  }
  const std::vector<float> zeros(static_cast<size_t>(w[0]), 0.0f);
  const Name none = keep(onnx_tensor("", {w[0]}, std::span<const float>(zeros)));
  Names b;
  for (size_t g = 0; g < 4; ++g)
    b.push_back(has(first + 11 + g) ? bias(first + 11 + g, w[0]) : none);
  const Name all = add("Concat", {b[0], b[3], b[1], b[2], none, none, none, none}, {{"axis", 0}});
  out.push_back(add("Unsqueeze", {all, list({0})}));
  return out;
}

// All hidden states: [time, directions, batch, width].
TfliteGraph::Name TfliteGraph::ran(Name x, const std::vector<Names>& ways,
                                   std::string_view direction, int64_t width) {
  if (failed()) return kNone;
  Names inputs = {x};
  for (size_t part = 0; part < 3; ++part) {
    if (ways.size() == 1) {
      inputs.push_back(ways[0][part]);
      continue;
    }
    inputs.push_back(add("Concat", {ways[0][part], ways[1][part]}, {{"axis", 0}}));
  }
  return add("LSTM", inputs, {{"hidden_size", width}, text_of("direction", direction)});
}

void TfliteGraph::lstm() {
  check_lstm(1, 18);
  for (size_t i = 20; i < op_->inputs.size(); ++i) {
    if (has(i)) return refuse("layer norms of gates are not read");
  }
  const List& x = dims(0);
  const List& w = dims(1);
  if (x.size() != 3 || w.size() != 2 || w[1] != x[2])
    return refuse("an input that is not a sequence, or weights that do not fit it");
  const bool by_time = flag(3);
  Name y = in(0);
  if (!by_time) y = moved(y, {1, 0, 2});
  const Names way = one_way(1);
  y = ran(y, {way}, "forward", w[0]);
  y = add("Squeeze", {y, list({1})});
  if (!by_time) y = moved(y, {1, 0, 2});
  define(0, y, {x[0], x[1], w[0]});
}

void TfliteGraph::both_ways_lstm() {
  check_lstm(1, 35);
  check_lstm(18, 37);
  for (size_t i = 39; i < op_->inputs.size(); ++i) {
    if (has(i)) return refuse("a second input is not read");
  }
  const List& x = dims(0);
  const List& w = dims(1);
  const List& back = dims(18);
  if (x.size() != 3 || w.size() != 2 || w[1] != x[2] || back != w)
    return refuse("an input that is not a sequence, or directions of different sizes");
  const bool by_time = flag(4), merged = flag(3);
  if (op_->outputs.size() != (merged ? 1 : 2)) return refuse("another number of outputs");
  Name y = in(0);
  if (!by_time) y = moved(y, {1, 0, 2});
  const Names forward = one_way(1);
  const Names backward = one_way(18);
  y = ran(y, {forward, backward}, "bidirectional", w[0]);
  // [time, direction, batch, width] to [time, batch, direction, width], or with the batch in front.
  y = moved(y, by_time ? List{0, 2, 1, 3} : List{2, 0, 1, 3});
  if (merged) {
    y = shaped(y, {x[0], x[1], 2 * w[0]});
    return define(0, y, {x[0], x[1], 2 * w[0]});
  }
  Names ways = add_many("Split", Names{y, list({1, 1})}, {{"axis", 2}}, 2);
  for (size_t i = 0; i < 2; ++i) {
    y = add("Squeeze", {ways[i], list({2})});
    define(i, y, {x[0], x[1], w[0]});
  }
}

}  // namespace loom::core
