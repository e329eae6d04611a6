// RNN, LSTM and GRU with every attribute: directions, initial states, lengths, peepholes, clip,
// layout, any activations, in f32. Products of the inputs for all steps are one product of
// matrices. Those of the states are one per step. Both use the kernels of networks, with weights
// that are packed once.
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/products.hpp"
#include "ops/fmath.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

// The functions that ONNX names for recurrent operators, and their alpha and beta where it is
// silent.
struct FunctionRow {
  std::string_view name;
  float alpha, beta;
  float (*f)(float x, float alpha, float beta);
};
constexpr FunctionRow kFunctions[] = {
    {"Sigmoid", 0, 0, [](float x, float, float) { return fmath::sigmoid<float>(x); }},
    {"Tanh", 0, 0, [](float x, float, float) { return fmath::tanh<float>(x); }},
    {"Relu", 0, 0, [](float x, float, float) { return x > 0 ? x : 0; }},
    {"Affine", 1, 0, [](float x, float a, float b) { return a * x + b; }},
    {"LeakyRelu", 0.01F, 0, [](float x, float a, float) { return x < 0 ? a * x : x; }},
    {"ThresholdedRelu", 1, 0, [](float x, float a, float) { return x > a ? x : 0; }},
    {"ScaledTanh", 1, 1, [](float x, float a, float b) { return a * fmath::tanh<float>(b * x); }},
    {"HardSigmoid", 0.2F, 0.5F,
     [](float x, float a, float b) { return std::clamp(a * x + b, 0.0F, 1.0F); }},
    {"Elu", 1, 0,
     [](float x, float a, float) { return x < 0 ? a * (fmath::exp<float>(x) - 1) : x; }},
    {"Softsign", 0, 0, [](float x, float, float) { return x / (1 + std::abs(x)); }},
    {"Softplus", 0, 0, [](float x, float, float) { return fmath::softplus<float>(x); }},
};

struct Activity {
  const FunctionRow* row;
  float alpha, beta;
  float operator()(float x) const { return row->f(x, alpha, beta); }
};

// Weights as the kernels read them: a product of the inputs and one of the states per direction; of
// a GRU also the last gate's part of the latter.
struct PackedRecurrence : Prepared {
  std::vector<std::shared_ptr<PackedMatrix>> w, r, last;
};

// One recurrent operator: gates of H rows each, in the operator's own order.
struct Recurrence {
  int64_t steps, batch, width, hidden, directions;
  int gates;
  bool batch_first;
  float clip;
  std::vector<Activity> functions;  // of all directions, one after the other
  std::vector<int> backwards;
  Dims lengths;
  Value x, w, r, b, h, c, p;
};

Status add_functions(const Call& c, Recurrence& o, std::initializer_list<std::string_view> usual) {
  const OnnxAttribute* names = c.node.find("activations");
  const OnnxAttribute *alphas = c.node.find("activation_alpha"),
                      *betas = c.node.find("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (int64_t d = 0; d < o.directions; ++d) {
    size_t k = 0;
    for (const std::string_view otherwise : usual) {
      const size_t at = static_cast<size_t>(d) * usual.size() + k++;
      if (names != nullptr && at >= names->texts.size()) return c.bad("too few activations");
      const std::string name =
          to_lower_ascii(names != nullptr ? std::string_view(names->texts[at]) : otherwise);
      const auto row = std::ranges::find_if(
          kFunctions, [&](const FunctionRow& f) { return to_lower_ascii(f.name) == name; });
      if (row == std::end(kFunctions)) return c.not_done(cat("activation '", printable(name), "'"));
      Activity a{&*row, row->alpha, row->beta};
      // Numbers are given in order to the functions that take them.
      const bool takes = row->alpha != 0 || row->beta != 0;
      if (takes && alphas != nullptr && next_alpha < alphas->reals.size())
        a.alpha = alphas->reals[next_alpha++];
      if (takes && row->beta != 0 && betas != nullptr && next_beta < betas->reals.size())
        a.beta = betas->reals[next_beta++];
      o.functions.push_back(a);
    }
  }
  return {};
}

Status add_directions(const Call& c, Recurrence& o) {
  const std::string direction = c.text("direction", "forward");
  o.backwards = {direction == "reverse" ? 1 : 0};
  if (direction == "bidirectional")
    o.backwards = {0, 1};
  else if (direction != "forward" && direction != "reverse")
    return c.bad("unknown direction");
  o.directions = static_cast<int64_t>(o.backwards.size());
  return {};
}

// A state [D, N, H], or [N, D, H] with layout 1; zeros where it is left out.
Result<Value> state_of(const Call& c, const Recurrence& o, size_t i) {
  const Dims want{o.directions, o.batch, o.hidden};
  LOOM_ASSIGN(Value out, c.make(OnnxType::f32, want));
  fill_zero(out);
  if (!c.has(i)) return out;
  LOOM_ASSIGN(const Value v, c.as(i, OnnxType::f32));
  if (!o.batch_first) return v.dims == want ? Result<Value>(v) : c.bad("a state that does not fit");
  if (v.dims != Dims{o.batch, o.directions, o.hidden}) return c.bad("a state that does not fit");
  move(c, v, out, {want, {o.hidden, o.directions * o.hidden, 1}, steps_of(want)});
  return out;
}

Result<Recurrence> recurrence(const Call& c, int gates,
                              std::initializer_list<std::string_view> functions) {
  Recurrence o{};
  if (!is_real(c.value(0).type) || c.value(0).type == OnnxType::f64)
    return c.not_done("recurrence in this type");
  o.gates = gates;
  o.batch_first = c.integer("layout", 0) != 0;
  o.clip = static_cast<float>(c.real("clip", 0));
  LOOM_TRY(add_directions(c, o));
  LOOM_ASSIGN(o.x, c.as(0, OnnxType::f32));
  LOOM_ASSIGN(o.w, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(o.r, c.as(2, OnnxType::f32));
  if (o.x.rank() != 3 || o.w.rank() != 3 || o.r.rank() != 3) return c.bad("takes three axes each");
  o.steps = o.x.dims[o.batch_first ? 1 : 0], o.batch = o.x.dims[o.batch_first ? 0 : 1];
  o.width = o.x.dims[2], o.hidden = o.r.dims[2];
  const int64_t rows = gates * o.hidden;
  if (o.w.dims != Dims{o.directions, rows, o.width} ||
      o.r.dims != Dims{o.directions, rows, o.hidden})
    return c.bad("weights that do not fit");
  if (c.integer("hidden_size", o.hidden) != o.hidden) return c.bad("hidden_size differs");
  if (o.batch_first) {
    LOOM_ASSIGN(Value x, c.make(OnnxType::f32, {o.steps, o.batch, o.width}));
    move(c, o.x, x, {x.dims, {o.width, o.steps * o.width, 1}, steps_of(x.dims)});
    o.x = x;
  }
  LOOM_ASSIGN(o.b, c.make(OnnxType::f32, {o.directions, 2 * rows}));
  fill_zero(o.b);
  if (c.has(3)) {
    LOOM_ASSIGN(const Value b, c.as(3, OnnxType::f32));
    if (b.dims != o.b.dims) return c.bad("a bias that does not fit");
    o.b = b;
  }
  LOOM_ASSIGN(o.lengths, c.int_list(4));
  if (!c.has(4)) o.lengths.assign(static_cast<size_t>(o.batch), o.steps);
  if (static_cast<int64_t>(o.lengths.size()) != o.batch) return c.bad("a length per sample");
  for (const int64_t n : o.lengths) {
    if (n < 0 || n > o.steps) return c.bad("a length beyond the steps");
  }
  LOOM_ASSIGN(o.h, state_of(c, o, 5));
  LOOM_TRY(add_functions(c, o, functions));
  return o;
}

// One direction while it runs: sums of the gates of one step for all samples, and the states [N,
// H].
struct Run {
  const Recurrence& o;
  int64_t direction;
  const float* gh;  // [N, gates H]: products of the state
  float *h, *cell;
  const float* bias;  // of the gates: of the input, then of the state
  const PackedMatrix* last;
  const Activity& function(int k) const {
    const auto each = static_cast<int64_t>(o.functions.size()) / o.directions;
    return o.functions[static_cast<size_t>(direction * each + k)];
  }
  float clipped(float v) const { return o.clip > 0 ? std::clamp(v, -o.clip, o.clip) : v; }
  float both_biases(int64_t row) const { return bias[row] + bias[o.gates * o.hidden + row]; }
};

Status product_of(const Call& c, const float* x, int64_t rows, const PackedMatrix& w, float* y) {
  MatmulArgs m;
  m.x = f32_matrix(const_cast<float*>(x), rows, w.w.cols());
  m.w = w.w;
  m.y = f32_matrix(y, rows, w.w.rows());
  LOOM_TRY(c.rt.recorder.matmul(m));
  return c.rt.recorder.flush();
}

Result<std::shared_ptr<const PackedRecurrence>> pack_recurrence(const Call& c, bool with_last) {
  auto out = std::make_shared<PackedRecurrence>();
  const Value &w = c.value(1), &r = c.value(2);
  const int64_t rows = r.dims[1], width = w.dims[2], hidden = r.dims[2];
  for (int64_t d = 0; d < w.dims[0]; ++d) {
    const float* state = r.data<float>() + d * rows * hidden;
    LOOM_ASSIGN(auto in, pack_rows(c, w.data<float>() + d * rows * width, rows, width));
    LOOM_ASSIGN(auto back, pack_rows(c, state, rows, hidden));
    out->w.push_back(std::move(in));
    out->r.push_back(std::move(back));
    if (!with_last) continue;
    LOOM_ASSIGN(auto last, pack_rows(c, state + (rows - hidden) * hidden, hidden, hidden));
    out->last.push_back(std::move(last));
  }
  return std::shared_ptr<const PackedRecurrence>(std::move(out));
}

template <bool Last>
Result<std::shared_ptr<const Prepared>> prepare_recurrence(const Call& c) {
  for (const size_t i : {1UL, 2UL}) {
    if (!c.has(i) || c.value(i).type != OnnxType::f32 || c.value(i).rank() != 3 ||
        c.value(i).count() == 0)
      return {nullptr};
  }
  const Dims &w = c.value(1).dims, &r = c.value(2).dims;
  if (w[0] != r[0] || w[1] != r[1] || r[1] < r[2]) return {nullptr};
  LOOM_ASSIGN(auto made, pack_recurrence(c, Last));
  return std::shared_ptr<const Prepared>(std::move(made));
}

// Steps a direction through time: `step(run, gates of the inputs, places)` writes the new states of
// the samples that are still running. y [T, D, N, H].
template <class Cell>
Status run_direction(const Call& c, const Recurrence& o, const PackedRecurrence& weights, int64_t d,
                     Value& y, float* h, float* cell, Cell step) {
  const int64_t rows = o.gates * o.hidden;
  LOOM_ASSIGN(Value gx, c.make(OnnxType::f32, {o.steps, o.batch, rows}));
  LOOM_ASSIGN(Value gh, c.make(OnnxType::f32, {o.batch, rows}));
  const auto k = static_cast<size_t>(d);
  if (o.steps > 0)
    LOOM_TRY(product_of(c, o.x.data<float>(), o.steps * o.batch, *weights.w[k], gx.data<float>()));
  const Run run{o,
                d,
                gh.data<float>(),
                h,
                cell,
                o.b.data<float>() + d * 2 * rows,
                weights.last.empty() ? nullptr : weights.last[k].get()};
  std::vector<const float*> at(static_cast<size_t>(o.batch));
  for (int64_t s = 0; s < o.steps; ++s) {
    LOOM_TRY(product_of(c, h, o.batch, *weights.r[k], gh.data<float>()));
    const auto position = [&](int64_t n) {
      const int64_t length = o.lengths[static_cast<size_t>(n)];
      return s >= length ? int64_t{-1} : o.backwards[k] != 0 ? length - 1 - s : s;
    };
    for (int64_t n = 0; n < o.batch; ++n) {
      const int64_t t = position(n);
      at[static_cast<size_t>(n)] = t < 0 ? nullptr : gx.data<float>() + (t * o.batch + n) * rows;
    }
    LOOM_TRY(step(run, at));
    for (int64_t n = 0; n < o.batch; ++n) {
      const int64_t t = position(n);
      if (t >= 0)
        std::copy_n(h + n * o.hidden, o.hidden,
                    y.data<float>() + ((t * o.directions + d) * o.batch + n) * o.hidden);
    }
  }
  return {};
}

// Y [T, D, N, H] and states [D, N, H], or with layout 1 [N, T, D, H] and [N, D, H].
Status give_results(const Call& c, const Recurrence& o, const Value& y, const Value* cell) {
  const OnnxType type = c.value(0).type;
  if (!o.batch_first) {
    LOOM_TRY(c.give_as(y, type, 0));
    LOOM_TRY(c.give_as(o.h, type, 1));
    return cell == nullptr ? Status{} : c.give_as(*cell, type, 2);
  }
  LOOM_ASSIGN(Value transposed, c.make(OnnxType::f32, {o.batch, o.steps, o.directions, o.hidden}));
  move(c, y, transposed,
       {transposed.dims,
        {o.hidden, o.directions * o.batch * o.hidden, o.batch * o.hidden, 1},
        steps_of(transposed.dims)});
  LOOM_TRY(c.give_as(transposed, type, 0));
  size_t i = 1;
  for (const Value* state : {&o.h, cell}) {
    if (state == nullptr) continue;
    LOOM_ASSIGN(Value out, c.make(OnnxType::f32, {o.batch, o.directions, o.hidden}));
    move(c, *state, out, {out.dims, {o.hidden, o.batch * o.hidden, 1}, steps_of(out.dims)});
    LOOM_TRY(c.give_as(out, type, i++));
  }
  return {};
}

// States change while they run: copies of what was given.
Result<Value> copied(const Call& c, const Value& v) {
  LOOM_ASSIGN(Value out, c.make(v.type, v.dims));
  std::copy_n(v.data<float>(), v.count(), out.data<float>());
  return out;
}

template <class Cell>
Status run_recurrence(const Call& c, Recurrence& o, bool has_cell, bool with_last, Cell step) {
  std::shared_ptr<const PackedRecurrence> made;
  const auto* weights = static_cast<const PackedRecurrence*>(c.prepared);
  if (weights == nullptr && o.hidden > 0 && o.width > 0) {
    Slot slots[3] = {c.slot(0), Slot::of(o.w), Slot::of(o.r)};
    const Slot* in[3] = {slots, slots + 1, slots + 2};
    LOOM_ASSIGN(made, pack_recurrence(Call(c.node, c.opset, c.rt, in, {}), with_last));
    weights = made.get();
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {o.steps, o.directions, o.batch, o.hidden}));
  fill_zero(y);
  LOOM_ASSIGN(o.h, copied(c, o.h));
  if (has_cell) {
    LOOM_ASSIGN(o.c, copied(c, o.c));
  }
  if (o.batch > 0 && weights != nullptr) {
    const int64_t size = o.batch * o.hidden;
    for (int64_t d = 0; d < o.directions; ++d)
      LOOM_TRY(run_direction(c, o, *weights, d, y, o.h.data<float>() + d * size,
                             has_cell ? o.c.data<float>() + d * size : nullptr, step));
  }
  return give_results(c, o, y, has_cell ? &o.c : nullptr);
}

using GateRows = std::vector<const float*>;

Status rnn(const Call& c) {
  LOOM_ASSIGN(Recurrence o, recurrence(c, 1, {"Tanh"}));
  return run_recurrence(c, o, false, false, [](const Run& r, const GateRows& at) -> Status {
    const int64_t H = r.o.hidden;
    for (int64_t n = 0; n < r.o.batch; ++n) {
      const float* gx = at[static_cast<size_t>(n)];
      for (int64_t i = 0; gx != nullptr && i < H; ++i) {
        const float sum = gx[i] + r.gh[n * H + i] + r.both_biases(i);
        r.h[n * H + i] = r.function(0)(r.clipped(sum));
      }
    }
    return {};
  });
}

// One sample of an LSTM: gates i, o, f, c; peepholes i, o, f.
void step_lstm(const Run& r, int64_t n, const float* gx, bool coupled) {
  const int64_t H = r.o.hidden;
  const float* peep = r.o.p.data<float>() + r.direction * 3 * H;
  const float* gh = r.gh + n * 4 * H;
  for (int64_t i = 0; i < H; ++i) {
    const auto gate = [&](int64_t k, float more) {
      const int64_t row = k * H + i;
      return r.clipped(gx[row] + gh[row] + r.both_biases(row) + more);
    };
    const auto hole = [&](int64_t k, float cell) { return peep[k * H + i] * cell; };
    const float before = r.cell[n * H + i];
    const float in = r.function(0)(gate(0, hole(0, before)));
    const float forget = coupled ? 1 - in : r.function(0)(gate(2, hole(2, before)));
    const float cell = forget * before + in * r.function(1)(gate(3, 0));
    const float out = r.function(0)(gate(1, hole(1, cell)));
    r.cell[n * H + i] = cell;
    r.h[n * H + i] = out * r.function(2)(cell);
  }
}

Status lstm(const Call& c) {
  LOOM_ASSIGN(Recurrence o, recurrence(c, 4, {"Sigmoid", "Tanh", "Tanh"}));
  LOOM_ASSIGN(o.c, state_of(c, o, 6));
  LOOM_ASSIGN(o.p, c.make(OnnxType::f32, {o.directions, 3 * o.hidden}));
  fill_zero(o.p);
  if (c.has(7)) {
    LOOM_ASSIGN(const Value p, c.as(7, OnnxType::f32));
    if (p.dims != o.p.dims) return c.bad("peepholes that do not fit");
    o.p = p;
  }
  const bool coupled = c.integer("input_forget", 0) != 0;
  return run_recurrence(c, o, true, false, [=](const Run& r, const GateRows& at) -> Status {
    for (int64_t n = 0; n < r.o.batch; ++n) {
      if (at[static_cast<size_t>(n)] != nullptr)
        step_lstm(r, n, at[static_cast<size_t>(n)], coupled);
    }
    return {};
  });
}

// Gates z, r, h. The reset comes after the product of the state (linear_before_reset), or before
// it: then that product is formed of the reset states of all samples.
Status step_gru(const Call& c, const Run& r, const GateRows& at, bool after, Value& scratch) {
  const int64_t H = r.o.hidden, batch = r.o.batch;
  float* update = scratch.data<float>();
  float* reset = update + batch * H;
  float* part = reset + batch * H;
  for (int64_t n = 0; n < batch; ++n) {
    const float* gx = at[static_cast<size_t>(n)];
    const float* gh = r.gh + n * 3 * H;
    for (int64_t i = 0; i < H; ++i) {
      const float z = gx == nullptr ? 0 : gx[i] + gh[i] + r.both_biases(i);
      const float s = gx == nullptr ? 0 : gx[H + i] + gh[H + i] + r.both_biases(H + i);
      update[n * H + i] = r.function(0)(r.clipped(z));
      reset[n * H + i] = r.function(0)(r.clipped(s)) * (after ? 1 : r.h[n * H + i]);
    }
  }
  if (!after) LOOM_TRY(product_of(c, reset, batch, *r.last, part));
  for (int64_t n = 0; n < batch; ++n) {
    const float* gx = at[static_cast<size_t>(n)];
    for (int64_t i = 0; gx != nullptr && i < H; ++i) {
      const int64_t row = 2 * H + i, position = n * H + i;
      const float back = r.bias[3 * H + row];
      const float state =
          after ? reset[position] * (r.gh[n * 3 * H + row] + back) : part[position] + back;
      const float fresh = r.function(1)(r.clipped(gx[row] + state + r.bias[row]));
      r.h[position] = (1 - update[position]) * fresh + update[position] * r.h[position];
    }
  }
  return {};
}

Status gru(const Call& c) {
  LOOM_ASSIGN(Recurrence o, recurrence(c, 3, {"Sigmoid", "Tanh"}));
  const bool after = c.integer("linear_before_reset", 0) != 0;
  LOOM_ASSIGN(Value scratch, c.make(OnnxType::f32, {3, o.batch, o.hidden}));
  return run_recurrence(c, o, false, true, [&](const Run& r, const GateRows& at) -> Status {
    return step_gru(c, r, at, after, scratch);
  });
}

constexpr Operator kRecurrent[] = {
    {"", "RNN", rnn, {}, "", Operator::none, prepare_recurrence<false>},
    {"", "LSTM", lstm, {}, "", Operator::none, prepare_recurrence<false>},
    {"", "GRU", gru, {}, "", Operator::none, prepare_recurrence<true>},
};

}  // namespace

std::span<const Operator> recurrent_operators() {
  return kRecurrent;
}

}  // namespace loom::core::evaluate
