// RNN, LSTM, GRU over x [sequences, T, I]: the products with the input are one matmul over all
// steps, those with the state one per step. The state starts at zero, or, in a session, where the
// last pass left it (session state [sequences, H], LSTM h|c).
//   RNN:  h = act(Wih x + Whh h + b)                              (Elman, 1990)
//   LSTM: gates i|f|g|o, one bias each; see LstmCellArgs          (Hochreiter and Schmidhuber,
//   1997) GRU:  gates r|z|n, biases on both sides; see GruCellArgs      (Cho et al., 2014)
#include "base/text.hpp"
#include "layers/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

enum { kIn, kHidden, kSequence, kActivation };
constexpr FieldDesc kRnnFields[] = {
    {"in", FieldType::integer, 1, 1, 1 << 20, "", "width of the input", "input_height"},
    {"hidden", FieldType::integer, 1, 1, 1 << 20, "", "width of the state", "output_height"},
    {"return_sequence", FieldType::boolean, 1, 0, 1, "", "all states, or only the last"},
    {"activation", FieldType::text, 0, 0, 0, "tanh", "function applied to the state"},
};
constexpr std::span<const FieldDesc> kGatedFields(kRnnFields, kActivation);

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() < 2 || in.rank() > 3 || in.last() != c.integer(kIn)) {
    return invalid(
        cat(c.def->name, ": input ", in.str(), " must be [batch, time, ", c.integer(kIn), "]"));
  }
  if (c.def->fields.size() > kActivation) LOOM_TRY(parse_activation(c.text(kActivation)));
  if (!c.flag(kSequence)) return Shape{in[0], c.integer(kHidden)};
  Shape out = in;
  out[in.rank() - 1] = c.integer(kHidden);
  return out;
}

void params_of(const LayerConfig& c, int64_t gates, bool two_biases, std::vector<ParamSpec>& out) {
  const int64_t h = c.integer(kHidden);
  out.push_back({"wih", Shape{gates * h, c.integer(kIn)}, Init::fan_in});
  out.push_back({"whh", Shape{gates * h, h}, Init::fan_in});
  out.push_back({"bias", Shape{gates * h}});
  if (two_biases) out.push_back({"bias_hh", Shape{gates * h}});
}
void rnn_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 1, false, out);
}
void lstm_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 4, false, out);
}
void gru_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  params_of(c, 3, true, out);
}

enum { kWih, kWhh, kBias, kBiasHh };

// What one pass over T steps works with. Step tensors are views of the whole sequence.
struct Run {
  int64_t batch = 0, steps = 0, hidden = 0;
  Tensor from_input;  // [batch * T, gates * H]: Wih x + b
  Tensor all;         // [batch * T, H]: every state
  Tensor before;      // [batch, H]: the state before step 0; empty: zeros

  Tensor input_part(int64_t t) const { return step_rows(from_input, batch, t); }
  Tensor h(int64_t t) const { return step_rows(all, batch, t); }
  Tensor h_before(int64_t t) const { return t == 0 ? before : h(t - 1); }
};

Result<Run> start(ForwardCall& call) {
  const LayerConfig& c = call.config();
  Run run;
  run.batch = call.sequences();
  run.steps = call.x().rows() / run.batch;
  run.hidden = c.integer(kHidden);
  const int64_t width = call.param(kWih).rows();
  LOOM_ASSIGN(run.from_input, call.tensor(Shape{run.batch * run.steps, width}));
  LOOM_ASSIGN(run.all, call.tensor(Shape{run.batch * run.steps, run.hidden}));
  if (call.stateful()) run.before = slice_cols(call.state(), 0, run.hidden);
  LOOM_TRY(call.ops().matmul({call.x(), call.param(kWih), call.param(kBias), run.from_input}));
  return run;
}

// Keeps the last state for the next pass and returns what the layer gives out.
Result<Tensor> finish(ForwardCall& call, const Run& run) {
  const Tensor last = run.h(run.steps - 1);
  if (call.stateful()) LOOM_TRY(call.ops().unary({last, run.before}));
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  if (call.config().flag(kSequence)) {
    Tensor y = run.all;
    y.shape = shape;
    return y;
  }
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().unary({last, y}));
  return y;
}

// Rows of step t of a tensor that holds step after step. One tensor for all steps: how many a layer
// asks for must not depend on the length (layer.hpp).
Tensor of_step(const Tensor& all, const Run& run, int64_t t) {
  return all.slice_rows(t * run.batch, run.batch);
}

Result<Tensor> forward_rnn(ForwardCall& call) {
  LOOM_ASSIGN(const Run run, start(call));
  LOOM_ASSIGN(const Activation activation, parse_activation(call.config().text(kActivation)));
  LOOM_ASSIGN(const Tensor products, call.like(run.from_input));
  LOOM_ASSIGN(const Tensor sums, call.like(run.from_input));
  for (int64_t t = 0; t < run.steps; ++t) {
    const Tensor before = run.h_before(t);
    Tensor sum = run.input_part(t);  // alone where the state is zero
    if (!before.empty()) {
      const Tensor product = of_step(products, run, t);
      LOOM_TRY(call.ops().matmul({before, call.param(kWhh), {}, product}));
      sum = of_step(sums, run, t);
      LOOM_TRY(call.ops().binary({run.input_part(t), product, sum, BinaryKind::add}));
    }
    LOOM_TRY(call.ops().unary({sum, run.h(t), static_cast<UnaryKind>(activation)}));
  }
  return finish(call, run);
}

Result<Tensor> forward_lstm(ForwardCall& call) {
  LOOM_ASSIGN(const Run run, start(call));
  const int64_t rows = run.batch * run.steps;
  LOOM_ASSIGN(const Tensor acts, call.tensor(Shape{rows, 4 * run.hidden}));
  LOOM_ASSIGN(const Tensor cells, call.tensor(Shape{rows, run.hidden}));
  Tensor before;
  if (call.stateful()) before = slice_cols(call.state(), run.hidden, run.hidden);
  const Tensor kept = before;
  for (int64_t t = 0; t < run.steps; ++t) {
    LstmCellArgs cell{run.input_part(t), before, of_step(acts, run, t), of_step(cells, run, t),
                      run.h(t)};
    cell.h_before = run.h_before(t);
    if (!cell.h_before.empty()) cell.w = call.param(kWhh);
    LOOM_TRY(call.ops().lstm_cell(cell));
    before = cell.c;
  }
  if (call.stateful()) LOOM_TRY(call.ops().unary({before, kept}));
  return finish(call, run);
}

Result<Tensor> forward_gru(ForwardCall& call) {
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

StateSpec one_state(const LayerConfig& c) {
  return {0, 0, c.integer(kHidden)};
}
StateSpec two_states(const LayerConfig& c) {
  return {0, 0, 2 * c.integer(kHidden)};
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

}  // namespace

extern const LayerDef kRnn;
const LayerDef kRnn = {.kind = LayerKind::rnn,
                       .name = "RNN",
                       .fields = kRnnFields,
                       .params = rnn_params,
                       .infer = infer,
                       .forward = forward_rnn,
                       .state = one_state,
                       .example = example_rnn};

extern const LayerDef kLstm;
const LayerDef kLstm = {.kind = LayerKind::lstm,
                        .name = "LSTM",
                        .fields = kGatedFields,
                        .params = lstm_params,
                        .infer = infer,
                        .forward = forward_lstm,
                        .state = two_states,
                        .example = example_lstm};

extern const LayerDef kGru;
const LayerDef kGru = {.kind = LayerKind::gru,
                       .name = "GRU",
                       .fields = kGatedFields,
                       .params = gru_params,
                       .infer = infer,
                       .forward = forward_gru,
                       .state = one_state,
                       .example = example_gru};

}  // namespace loom::core
