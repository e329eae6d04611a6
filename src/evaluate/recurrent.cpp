// RNN, LSTM and GRU with every attribute: directions, initial states, lengths, peepholes, clip, layout,
// any activations. Products of the inputs for all steps are one product of matrices; those of the
// states one per step, both on the kernels of networks. Gates are in double precision, rounded once.
#include <algorithm>
#include <cmath>

#include "base/dmath.hpp"
#include "evaluate/products.hpp"

namespace loom::core::evaluate {
namespace {


// The functions that ONNX names for recurrent operators, and their alpha and beta where it is silent.
struct FunctionRow {
  std::string_view name;
  double alpha, beta;
  double (*f)(double x, double alpha, double beta);
};
constexpr FunctionRow kFunctions[] = {
    {"Sigmoid", 0, 0, [](double x, double, double) { return 1 / (1 + dmath::exp(-x)); }},
    {"Tanh", 0, 0, [](double x, double, double) { return dmath::tanh(x); }},
    {"Relu", 0, 0, [](double x, double, double) { return x > 0 ? x : 0; }},
    {"Affine", 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"LeakyRelu", 0.01, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    {"ThresholdedRelu", 1, 0, [](double x, double a, double) { return x > a ? x : 0; }},
    {"ScaledTanh", 1, 1, [](double x, double a, double b) { return a * dmath::tanh(b * x); }},
    {"HardSigmoid", 0.2, 0.5,
     [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"Elu", 1, 0, [](double x, double a, double) { return x < 0 ? a * dmath::expm1(x) : x; }},
    {"Softsign", 0, 0, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"Softplus", 0, 0,
     [](double x, double, double) {
       return std::max(x, 0.0) + dmath::log1p(dmath::exp(-std::abs(x)));
     }},
};

struct Activity {
  const FunctionRow* row;
  double alpha, beta;
  double operator()(double x) const { return row->f(x, alpha, beta); }
};

// What one recurrent operator is about: gates of H rows each, in the operator's own order.
struct Recurrence {
  int64_t steps, batch, width, hidden, directions;
  int gates;
  bool batch_first;
  double clip;
  std::vector<Activity> functions;  // of all directions, one after the other
  std::vector<int> backwards;
  Dims lengths;
  Value x, w, r, b, h, c, p;  // double but for the products' operands
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
        a.alpha = static_cast<double>(alphas->reals[next_alpha++]);
      if (takes && row->beta != 0 && betas != nullptr && next_beta < betas->reals.size())
        a.beta = static_cast<double>(betas->reals[next_beta++]);
      o.functions.push_back(a);
    }
  }
  return {};
}

Status add_directions(const Call& c, Recurrence& o) {
  const std::string direction = c.text("direction", "forward");
  o.backwards = {direction == "reverse" ? 1 : 0};
  if (direction == "bidirectional") o.backwards = {0, 1};
  else if (direction != "forward" && direction != "reverse") return c.bad("direction is none");
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
  move(c, v, out,
       {want, {o.hidden, o.directions * o.hidden, 1}, steps_of(want)});
  return out;
}

Result<Recurrence> recurrence(const Call& c, int gates,
                              std::initializer_list<std::string_view> functions) {
  Recurrence o{};
  if (!is_real(c.value(0).type) || c.value(0).type == OnnxType::f64)
    return c.not_done("recurrence in this type");
  o.gates = gates;
  o.batch_first = c.integer("layout", 0) != 0;
  o.clip = c.real("clip", 0);
  LOOM_TRY(add_directions(c, o));
  LOOM_ASSIGN(o.x, c.as(0, OnnxType::f32));
  LOOM_ASSIGN(o.w, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(o.r, c.as(2, OnnxType::f32));
  if (o.x.rank() != 3 || o.w.rank() != 3 || o.r.rank() != 3) return c.bad("takes three axes each");
  o.steps = o.x.dims[o.batch_first ? 1 : 0], o.batch = o.x.dims[o.batch_first ? 0 : 1];
  o.width = o.x.dims[2], o.hidden = o.r.dims[2];
  const int64_t rows = gates * o.hidden;
  if (o.w.dims != Dims{o.directions, rows, o.width} || o.r.dims != Dims{o.directions, rows, o.hidden})
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
  LOOM_ASSIGN(o.lengths, c.whole(4));
  if (!c.has(4)) o.lengths.assign(static_cast<size_t>(o.batch), o.steps);
  if (static_cast<int64_t>(o.lengths.size()) != o.batch) return c.bad("a length per sample");
  for (const int64_t n : o.lengths) {
    if (n < 0 || n > o.steps) return c.bad("a length beyond the steps");
  }
  LOOM_ASSIGN(o.h, state_of(c, o, 5));
  LOOM_TRY(add_functions(c, o, functions));
  return o;
}

// One direction while it runs.
struct Run {
  const Recurrence& o;
  int64_t direction;
  const float* gx;        // [T, N, gates H]: products of the inputs
  const float* gh;        // [N, gates H] of the state
  float *h, *cell;        // [N, H]
  const Activity& function(int k) const {
    const auto each = static_cast<int64_t>(o.functions.size()) / o.directions;
    return o.functions[static_cast<size_t>(direction * each + k)];
  }
  double clipped(double v) const { return o.clip > 0 ? std::clamp(v, -o.clip, o.clip) : v; }
  // Both biases of a gate's row.
  double bias(int64_t row) const {
    const float* b = o.b.data<float>() + direction * 2 * o.gates * o.hidden;
    return static_cast<double>(b[row]) + static_cast<double>(b[o.gates * o.hidden + row]);
  }
  double half_bias(int64_t row, bool recurrent) const {
    const float* b = o.b.data<float>() + direction * 2 * o.gates * o.hidden;
    return static_cast<double>(b[row + (recurrent ? o.gates * o.hidden : 0)]);
  }
};

// Steps a direction through time: `cell(run, sample, gates of the input)` writes the new state of a
// sample. y [T, D, N, H].
template <class Cell>
Status run_direction(const Call& c, const Recurrence& o, int64_t d, Value& y, float* h, float* cell,
                     Cell step) {
  const int64_t rows = o.gates * o.hidden;
  LOOM_ASSIGN(Value gx, c.make(OnnxType::f32, {o.steps, o.batch, rows}));
  LOOM_ASSIGN(Value gh, c.make(OnnxType::f32, {o.batch, rows}));
  LOOM_TRY(multiply(c, o.x.data<float>(), o.w.data<float>() + d * rows * o.width, gx.data<float>(),
                    {o.steps * o.batch, o.width, rows, false, true}));
  LOOM_TRY(c.rt.recorder.flush());
  LOOM_ASSIGN(const auto packed,
              pack_rows(c, o.r.data<float>() + d * rows * o.hidden, rows, o.hidden));
  const Run run{o, d, gx.data<float>(), gh.data<float>(), h, cell};
  for (int64_t k = 0; k < o.steps; ++k) {
    MatmulArgs m;
    m.x = f32_matrix(h, o.batch, o.hidden);
    m.w = packed->w;
    m.y = f32_matrix(gh.data<float>(), o.batch, rows);
    LOOM_TRY(c.rt.recorder.matmul(m));
    LOOM_TRY(c.rt.recorder.flush());
    for (int64_t n = 0; n < o.batch; ++n) {
      const int64_t length = o.lengths[static_cast<size_t>(n)];
      const bool back = o.backwards[static_cast<size_t>(d)] != 0;
      const int64_t t = back ? length - 1 - k : k;
      if (k >= length) continue;
      LOOM_TRY(step(run, n, run.gx + (t * o.batch + n) * rows));
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
  LOOM_ASSIGN(Value turned, c.make(OnnxType::f32, {o.batch, o.steps, o.directions, o.hidden}));
  move(c, y, turned,
       {turned.dims,
        {o.hidden, o.directions * o.batch * o.hidden, o.batch * o.hidden, 1},
        steps_of(turned.dims)});
  LOOM_TRY(c.give_as(turned, type, 0));
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
Status run_recurrence(const Call& c, Recurrence& o, bool has_cell, Cell step) {
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {o.steps, o.directions, o.batch, o.hidden}));
  fill_zero(y);
  LOOM_ASSIGN(o.h, copied(c, o.h));
  if (has_cell) {
    LOOM_ASSIGN(o.c, copied(c, o.c));
  }
  if (o.batch > 0 && o.hidden > 0) {
    const int64_t size = o.batch * o.hidden;
    for (int64_t d = 0; d < o.directions; ++d)
      LOOM_TRY(run_direction(c, o, d, y, o.h.data<float>() + d * size,
                             has_cell ? o.c.data<float>() + d * size : nullptr, step));
  }
  return give_results(c, o, y, has_cell ? &o.c : nullptr);
}

Status rnn(const Call& c) {
  LOOM_ASSIGN(Recurrence o, recurrence(c, 1, {"Tanh"}));
  return run_recurrence(c, o, false, [](const Run& r, int64_t n, const float* gx) -> Status {
    const int64_t H = r.o.hidden;
    for (int64_t i = 0; i < H; ++i) {
      const double sum = static_cast<double>(gx[i]) + static_cast<double>(r.gh[n * H + i]);
      r.h[n * H + i] = static_cast<float>(r.function(0)(r.clipped(sum + r.bias(i))));
    }
    return {};
  });
}

// Gates i, o, f, c; peepholes i, o, f.
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
  return run_recurrence(c, o, true, [=](const Run& r, int64_t n, const float* gx) -> Status {
    const int64_t H = r.o.hidden;
    const float* peep = r.o.p.data<float>() + r.direction * 3 * H;
    const float* gh = r.gh + n * 4 * H;
    for (int64_t i = 0; i < H; ++i) {
      const auto gate = [&](int64_t k, double more) {
        const int64_t row = k * H + i;
        return r.clipped(static_cast<double>(gx[row]) + static_cast<double>(gh[row]) +
                         r.bias(row) + more);
      };
      const auto before = static_cast<double>(r.cell[n * H + i]);
      const auto hole = [&](int64_t k, double cell) {
        return static_cast<double>(peep[k * H + i]) * cell;
      };
      const double in = r.function(0)(gate(0, hole(0, before)));
      const double forget = coupled ? 1 - in : r.function(0)(gate(2, hole(2, before)));
      const double cell = forget * before + in * r.function(1)(gate(3, 0));
      const double out = r.function(0)(gate(1, hole(1, cell)));
      r.cell[n * H + i] = static_cast<float>(cell);
      r.h[n * H + i] = static_cast<float>(out * r.function(2)(cell));
    }
    return {};
  });
}

// Gates z, r, h. Reset after the product of the state (linear_before_reset), or before it, where that
// product is formed for each sample from the reset state.
Status gru(const Call& c) {
  LOOM_ASSIGN(Recurrence o, recurrence(c, 3, {"Sigmoid", "Tanh"}));
  const bool after = c.integer("linear_before_reset", 0) != 0;
  return run_recurrence(c, o, false, [=](const Run& r, int64_t n, const float* gx) -> Status {
    const int64_t H = r.o.hidden;
    const float* gh = r.gh + n * 3 * H;
    float* h = r.h + n * H;
    std::vector<double> update(static_cast<size_t>(H)), reset(static_cast<size_t>(H));
    for (int64_t i = 0; i < 2 * H; ++i) {
      const double sum = static_cast<double>(gx[i]) + static_cast<double>(gh[i]) + r.bias(i);
      (i < H ? update[static_cast<size_t>(i)] : reset[static_cast<size_t>(i - H)]) =
          r.function(0)(r.clipped(sum));
    }
    std::vector<double> fresh(static_cast<size_t>(H));
    const float* weights = r.o.r.data<float>() + (r.direction * 3 + 2) * H * H;
    for (int64_t i = 0; i < H; ++i) {
      const int64_t row = 2 * H + i;
      double part = 0;
      if (after) {
        part = reset[static_cast<size_t>(i)] *
               (static_cast<double>(gh[row]) + r.half_bias(row, true));
      } else {
        for (int64_t k = 0; k < H; ++k)
          part += static_cast<double>(weights[i * H + k]) * reset[static_cast<size_t>(k)] *
                  static_cast<double>(h[k]);
        part += r.half_bias(row, true);
      }
      const double sum = static_cast<double>(gx[row]) + part + r.half_bias(row, false);
      fresh[static_cast<size_t>(i)] = r.function(1)(r.clipped(sum));
    }
    for (int64_t i = 0; i < H; ++i) {
      const double z = update[static_cast<size_t>(i)];
      h[i] = static_cast<float>((1 - z) * fresh[static_cast<size_t>(i)] +
                                z * static_cast<double>(h[i]));
    }
    return {};
  });
}

constexpr Operator kRecurrent[] = {
    {"", "RNN", rnn, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size layout"},
    {"", "LSTM", lstm, 3, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"},
    {"", "GRU", gru, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "linear_before_reset output_sequence"},
};

}  // namespace

std::span<const Operator> recurrent_operators() {
  return kRecurrent;
}

}  // namespace loom::core::evaluate
