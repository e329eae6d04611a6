// RNN, LSTM, GRU over x [sequences, T, I]. The products with the input are one matmul over all
// steps; those with the state are one per step. The state starts at zero or, in a session, where
// the last pass ended (session state [sequences, H], LSTM h|c). If samples have lengths, the last
// state is that of the last real step, and later states are zeros. In a Graph a node can read its
// initial state and return the last one: [B, H], for an LSTM h and c. They are inputs after x and
// outputs after y. Such an input replaces the session state. With state_bias, b is the sum of two
// biases that train separately.
//   RNN:  h = act(Wih x + Whh h + b) (Elman, 1990).
//   LSTM: gates i|f|g|o, one bias each; see LstmCellArgs (Hochreiter and Schmidhuber, 1997).
//   GRU:  gates r|z|n, biases on both sides; see GruCellArgs (Cho et al., 2014).
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/shapes/ends.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::rnn;  // those of LSTM and GRU begin with the same
static_assert(fields::lstm::kFinalState == kFinalState && fields::gru::kFinalState == kFinalState);

bool has_state_bias(const LayerConfig& c) {
  if (c.def->kind == LayerKind::lstm) return c.flag(fields::lstm::kStateBias);
  return c.def->kind == LayerKind::rnn && c.flag(kStateBias);
}

// The number of tensors of a state: h, or h and c.
size_t parts_of(const LayerConfig& c) {
  return c.def->kind == LayerKind::lstm ? 2 : 1;
}

Status check_states(const LayerConfig& c, std::span<const Shape> in) {
  const size_t expected = 1 + (c.flag(kInitialState) ? parts_of(c) : 0);
  if (in.size() != expected) {
    return invalid(cat(c.def->name, " takes ", expected, expected == 1 ? " input" : " inputs",
                       c.flag(kInitialState) ? " with initial_state" : " without initial_state",
                       ", but ", in.size(), in.size() == 1 ? " is given" : " are given"));
  }
  if ((c.flag(kInitialState) || c.flag(kFinalState)) && in[0].rank() != 3)
    return invalid(cat(c.def->name, ": input ", in[0].str(), " must have a batch and a time axis"));
  const Shape state{in[0][0], c.integer(kHidden)};
  for (const Shape& given : in.subspan(1)) {
    if (given == state) continue;
    return invalid(
        cat(c.def->name, ": the state it begins with is ", given.str(), ", must be ", state.str()));
  }
  return {};
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() < 2 || in.rank() > 3 || in.last() != c.integer(kIn)) {
    return invalid(
        cat(c.def->name, ": input ", in.str(), " must be [batch, time, ", c.integer(kIn), "]"));
  }
  if (c.def->fields[c.def->fields.size() - 2].name == "activation")
    LOOM_TRY(parse_activation(c.text(kActivation)));
  if (!c.flag(kReturnSequence)) return Shape{in[0], c.integer(kHidden)};
  Shape out = in;
  out[in.rank() - 1] = c.integer(kHidden);
  return out;
}

Result<std::vector<Shape>> infer_with_states(const LayerConfig& c, std::span<const Shape> in) {
  LOOM_ASSIGN(const Shape y, infer(c, in[0]));
  LOOM_TRY(check_states(c, in));
  std::vector<Shape> out = {y};
  if (c.flag(kFinalState)) out.insert(out.end(), parts_of(c), Shape{in[0][0], c.integer(kHidden)});
  return out;
}

void params_of(const LayerConfig& c, int64_t gates, bool two_biases, std::vector<ParamSpec>& out) {
  const int64_t h = c.integer(kHidden);
  out.push_back(product_weight("wih", Shape{gates * h, c.integer(kIn)}, Init::fan_in));
  out.push_back({"whh", Shape{gates * h, h}, Init::fan_in});
  out.push_back({"bias", Shape{gates * h}});
  if (two_biases) out.push_back({"bias_hh", Shape{gates * h}});
}
void rnn_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 1, has_state_bias(c), out);
}
void lstm_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 4, has_state_bias(c), out);
}
void gru_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 3, true, out);
}

enum { kWih, kWhh, kBias, kBiasHh };

// The tensors of one pass over T steps. Step tensors are views of the whole sequence.
struct Run {
  int64_t batch = 0, steps = 0, hidden = 0;
  Tensor from_input;   // [batch * T, gates * H]: Wih x + b
  Tensor all;          // [batch * T, H]: every state
  Tensor before;       // [batch, H]: the state before step 0; empty means zeros
  bool early = false;  // sequences may end before the last step

  Tensor input_part(int64_t t) const { return step_rows(from_input, batch, t); }
  Tensor h(int64_t t) const { return step_rows(all, batch, t); }
  Tensor h_before(int64_t t) const { return t == 0 ? before : h(t - 1); }
};

// Whether the state continues in the next pass of a session.
bool keeps(ForwardCall& call) {
  return call.stateful() && !call.config().flag(kInitialState);
}

Result<Run> start(ForwardCall& call) {
  const LayerConfig& c = call.config();
  Run run;
  run.batch = call.sequences();
  run.steps = call.x().rows() / run.batch;
  run.hidden = c.integer(kHidden);
  LOOM_ASSIGN(run.early, has_lengths(call, run.steps));
  const int64_t width = call.param(kWih).rows();
  LOOM_ASSIGN(run.from_input, call.tensor(Shape{run.batch * run.steps, width}));
  LOOM_ASSIGN(run.all, call.tensor(Shape{run.batch * run.steps, run.hidden}));
  if (keeps(call)) run.before = slice_cols(call.state(), 0, run.hidden);
  if (c.flag(kInitialState)) run.before = call.inputs()[1];
  Tensor bias = call.param(kBias);
  if (has_state_bias(c)) {
    LOOM_ASSIGN(bias, call.tensor(bias.shape));
    LOOM_TRY(call.ops().binary({call.param(kBias), call.param(kBiasHh), bias, BinaryKind::add}));
  }
  LOOM_TRY(call.product(kWih, {call.x(), {}, bias, run.from_input}));
  return run;
}

// A contiguous copy.
Result<Tensor> copied(ForwardCall& call, const Tensor& t, const Shape& shape) {
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().unary({t, y}));
  return y;
}

// Saves the last state for the next pass and returns the outputs of the layer. cell: the last one
// of an LSTM.
Result<std::vector<Tensor>> finish(ForwardCall& call, const Run& run, const Tensor& cell = {}) {
  Tensor last = run.h(run.steps - 1);
  if (run.early) {
    LOOM_ASSIGN(last, last_rows(call, run.all));
  }
  if (keeps(call)) LOOM_TRY(call.ops().unary({last, run.before}));
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  std::vector<Tensor> out;
  if (call.config().flag(kReturnSequence)) {
    Tensor y = run.all;
    if (run.early) {
      LOOM_ASSIGN(y, cleared_rows(call, y));
    }
    y.shape = shape;
    out.push_back(y);
  } else {
    LOOM_ASSIGN(out.emplace_back(), copied(call, last, shape));
  }
  if (!call.config().flag(kFinalState)) return out;
  for (const Tensor& state : {last, cell}) {
    if (state.empty()) continue;
    LOOM_ASSIGN(out.emplace_back(), copied(call, state, Shape{run.batch, run.hidden}));
  }
  return out;
}

// Rows of step t of a tensor that holds all steps in order. One tensor for all steps: the number of
// requested tensors must not depend on the length (layer.hpp).
Tensor of_step(const Tensor& all, const Run& run, int64_t t) {
  return all.slice_rows(t * run.batch, run.batch);
}

Result<std::vector<Tensor>> forward_rnn(ForwardCall& call) {
  LOOM_ASSIGN(const Run run, start(call));
  LOOM_ASSIGN(const Activation activation, parse_activation(call.config().text(kActivation)));
  LOOM_ASSIGN(const Tensor products, call.like(run.from_input));
  LOOM_ASSIGN(const Tensor sums, call.like(run.from_input));
  // An unbounded function would grow on padding, and zero times infinity is not zero.
  Tensor unmasked = run.all;
  if (run.early) {
    LOOM_ASSIGN(unmasked, call.like(run.all));
  }
  for (int64_t t = 0; t < run.steps; ++t) {
    const Tensor before = run.h_before(t);
    Tensor sum = run.input_part(t);  // alone if the state is zero
    if (!before.empty()) {
      const Tensor product = of_step(products, run, t);
      LOOM_TRY(call.ops().matmul({before, call.param(kWhh), {}, product}));
      sum = of_step(sums, run, t);
      LOOM_TRY(call.ops().binary({run.input_part(t), product, sum, BinaryKind::add}));
    }
    const Tensor made = step_rows(unmasked, run.batch, t);
    LOOM_TRY(call.ops().unary({sum, made, static_cast<UnaryKind>(activation)}));
    if (!run.early) continue;
    LOOM_TRY(call.ops().binary({made, slice_cols(call.mask(), t, 1), run.h(t), BinaryKind::mul}));
  }
  return finish(call, run);
}

// The cells of the last real steps; `cells` holds all steps in order.
Result<Tensor> last_cells(ForwardCall& call, const Run& run, const Tensor& cells) {
  LOOM_ASSIGN(const Tensor reversed, call.like(run.all));
  CopyArgs c;
  c.x = cells;
  c.y = reversed;
  c.rank = 3;
  const int64_t extents[] = {run.batch, run.steps, run.hidden};
  const int64_t from[] = {run.hidden, run.batch * run.hidden, 1};
  const int64_t to[] = {run.steps * run.hidden, run.hidden, 1};
  std::copy_n(extents, 3, c.extent);
  std::copy_n(from, 3, c.x_step);
  std::copy_n(to, 3, c.y_step);
  c.whole = true;
  LOOM_TRY(call.ops().copy(c));
  return last_rows(call, reversed);
}

Result<std::vector<Tensor>> forward_lstm(ForwardCall& call) {
  LOOM_ASSIGN(const Run run, start(call));
  const int64_t rows = run.batch * run.steps;
  LOOM_ASSIGN(const Tensor acts, call.tensor(Shape{rows, 4 * run.hidden}));
  LOOM_ASSIGN(const Tensor cells, call.tensor(Shape{rows, run.hidden}));
  Tensor before;
  if (keeps(call)) before = slice_cols(call.state(), run.hidden, run.hidden);
  const Tensor kept = before;
  if (call.config().flag(kInitialState)) before = call.inputs()[2];
  for (int64_t t = 0; t < run.steps; ++t) {
    LstmCellArgs cell{run.input_part(t), before, of_step(acts, run, t), of_step(cells, run, t),
                      run.h(t)};
    cell.h_before = run.h_before(t);
    if (!cell.h_before.empty()) cell.w = call.param(kWhh);
    LOOM_TRY(call.ops().lstm_cell(cell));
    before = cell.c;
  }
  if (run.early && (keeps(call) || call.config().flag(kFinalState))) {
    LOOM_ASSIGN(before, last_cells(call, run, cells));
  }
  if (keeps(call)) LOOM_TRY(call.ops().unary({before, kept}));
  return finish(call, run, before);
}

Result<std::vector<Tensor>> forward_gru(ForwardCall& call) {
  LOOM_ASSIGN(const Run run, start(call));
  LOOM_ASSIGN(const Tensor acts, call.like(run.from_input));
  LOOM_ASSIGN(const Tensor products, call.like(run.from_input));
  LOOM_ASSIGN(const Tensor zeros, call.tensor(Shape{run.batch, run.hidden}));
  if (run.before.empty()) LOOM_TRY(call.ops().fill({zeros, 0.0f}));
  for (int64_t t = 0; t < run.steps; ++t) {
    const Tensor before = run.h_before(t).empty() ? zeros : run.h_before(t);
    const Tensor from_state = of_step(products, run, t);
    LOOM_TRY(call.ops().matmul({before, call.param(kWhh), call.param(kBiasHh), from_state}));
    LOOM_TRY(call.ops().gru_cell(
        {run.input_part(t), from_state, before, of_step(acts, run, t), run.h(t)}));
  }
  return finish(call, run);
}

StateSpec state(const LayerConfig& c) {
  if (c.flag(kInitialState)) return {};
  return {0, 0, static_cast<int64_t>(parts_of(c)) * c.integer(kHidden)};
}

LayerExample example_of(LayerKind kind) {
  return {Shape{9, 5}, {{kind, {{"in", 5}, {"hidden", 11}}}, sketch_dense(11, 3)}, 3};
}
LayerExample example_rnn() {
  return {Shape{9, 5}, {{LayerKind::rnn, {{"in", 5}, {"hidden", 11}}}}, 3};
}
LayerExample example_lstm() {
  return example_of(LayerKind::lstm);
}
LayerExample example_gru() {
  return example_of(LayerKind::gru);
}

constexpr LayerDef recurrent_def(LayerKind kind, std::string_view name,
                                 std::span<const FieldDesc> fields,
                                 void (*params)(const LayerConfig&, std::vector<ParamSpec>&),
                                 Result<std::vector<Tensor>> (*forward)(ForwardCall&),
                                 LayerExample (*example)()) {
  return {.kind = kind,
          .name = name,
          .fields = fields,
          .params = params,
          .infer = infer_with_states,
          .forward = forward,
          .max_inputs = kind == LayerKind::lstm ? 3 : 2,
          .state = state,
          .example = example};
}

}  // namespace

extern const LayerDef kRnn;
const LayerDef kRnn =
    recurrent_def(LayerKind::rnn, "RNN", kFields, rnn_params, forward_rnn, example_rnn);

extern const LayerDef kLstm;
const LayerDef kLstm = recurrent_def(LayerKind::lstm, "LSTM", fields::lstm::kFields, lstm_params,
                                     forward_lstm, example_lstm);

extern const LayerDef kGru;
const LayerDef kGru = recurrent_def(LayerKind::gru, "GRU", fields::gru::kFields, gru_params,
                                    forward_gru, example_gru);

}  // namespace loom::core
