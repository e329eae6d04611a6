// fuse_recurrence: the steps of a recurrent layer as one dispatch. A step is a product of the state
// with the weights, and a cell; each reads the result of the one before. As commands they are two
// or three dispatches a step, whose cost exceeds their work by far. A workgroup has a row of the
// batch and keeps its state. All outputs of the commands are written.
#include "backend/webgpu/fusion/fused.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core::webgpu {
namespace {

enum class Cell : uint8_t { rnn, lstm, gru };

// A step in terms of its commands. `acts` holds the values that backward passes read: sums of an
// RNN, gates of LSTM and GRU.
struct Step {
  Cell cell = Cell::rnn;
  UnaryKind activation = UnaryKind::linear;  // of an RNN
  Tensor w, bias, before, input, product, acts, c_before, c, h;
  int64_t commands = 0;
};

bool same(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.shape == b.shape && a.row_stride == b.row_stride &&
         a.dtype == b.dtype;
}

bool rnn_step(std::span<const Command> rest, const MatmulArgs& product, Step& step) {
  const auto* sum = args_at<BinaryArgs>(rest, 1);
  const auto* cell = args_at<UnaryArgs>(rest, 2);
  if (sum == nullptr || cell == nullptr || sum->kind != BinaryKind::add) return false;
  if (!same(sum->b, product.y) || !same(sum->y, cell->x)) return false;
  step.cell = Cell::rnn;
  step.activation = cell->kind;
  step.input = sum->a;
  step.acts = sum->y;
  step.h = cell->y;
  step.commands = 3;
  return true;
}

bool lstm_step(std::span<const Command> rest, const MatmulArgs& product, Step& step) {
  const auto* cell = args_at<LstmCellArgs>(rest, 1);
  if (cell == nullptr || !same(cell->more, product.y) || !cell->w.empty()) return false;
  step.cell = Cell::lstm;
  step.input = cell->gates;
  step.acts = cell->acts;
  step.c_before = cell->c_before;
  step.c = cell->c;
  step.h = cell->h;
  step.commands = 2;
  return true;
}

bool gru_step(std::span<const Command> rest, const MatmulArgs& product, Step& step) {
  const auto* cell = args_at<GruCellArgs>(rest, 1);
  if (cell == nullptr || !same(cell->gh, product.y) || !same(cell->h_before, product.x))
    return false;
  step.cell = Cell::gru;
  step.input = cell->gx;
  step.acts = cell->acts;
  step.h = cell->h;
  step.commands = 2;
  return true;
}

int64_t gates_of(Cell cell) {
  return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
}

// Whether the front of `rest` is a step over the whole state.
bool step_at(std::span<const Command> rest, Step& step) {
  const auto* product = args_at<MatmulArgs>(rest, 0);
  if (product == nullptr || product->use_q8 || product->activation != Activation::linear)
    return false;
  if (!rnn_step(rest, *product, step) && !lstm_step(rest, *product, step) &&
      !gru_step(rest, *product, step)) {
    return false;
  }
  step.w = product->w;
  step.bias = product->bias;
  step.before = product->x;
  step.product = product->y;
  const int64_t units = step.h.cols(), gates = gates_of(step.cell);
  for (const Tensor* t : {&step.before, &step.input, &step.product, &step.acts, &step.h}) {
    if (t->dtype != DType::f32 || t->rows() != step.h.rows()) return false;
  }
  return step.before.cols() == units && step.input.cols() == gates * units &&
         step.w.shape == Shape{gates * units, units};
}

// The distances, in values, between the tensors of a step and those of the previous step.
struct Strides {
  int64_t input = 0, product = 0, acts = 0, c = 0, h = 0;
  bool operator==(const Strides&) const = default;
};

int64_t distance(const Tensor& from, const Tensor& to) {
  return (to.data - from.data) / static_cast<int64_t>(sizeof(float));
}

// Whether `next` continues `last`.
bool follows(const Step& last, const Step& next, Strides& strides) {
  const bool alike = next.cell == last.cell && next.activation == last.activation &&
                     same(next.w, last.w) && same(next.bias, last.bias) &&
                     same(next.before, last.h) &&
                     (next.cell != Cell::lstm || same(next.c_before, last.c));
  const auto rows = [](const Tensor& a, const Tensor& b) {
    return a.row_stride == b.row_stride && a.shape == b.shape;
  };
  if (!alike || !rows(last.input, next.input) || !rows(last.product, next.product) ||
      !rows(last.acts, next.acts) || !rows(last.h, next.h) || !rows(last.c, next.c)) {
    return false;
  }
  strides = {distance(last.input, next.input), distance(last.product, next.product),
             distance(last.acts, next.acts), last.c.empty() ? 0 : distance(last.c, next.c),
             distance(last.h, next.h)};
  const auto [input, product, acts, c, h] = strides;
  return input > 0 && product > 0 && acts > 0 && h > 0 && (last.c.empty() || c > 0);
}

// A unit of the state has `shares` invocations, `units` apart, so that adjacent invocations read
// adjacent rows of the weights. Each holds `each` weights per gate and sums its products in every
// step; one invocation adds these sums. Inputs are loaded before that, to hide the latency.
constexpr Kernel kRecurrence{"recurrence", R"(
var<workgroup> state: array<f32, units>;
var<workgroup> sums: array<f32, gates * lanes>;
fn run(row: u32, lane: u32) {
  let unit = lane % units;
  let share = lane / units;
  if (share == 0u) {
    state[unit] = before_at(row * p.before_s + unit);
    begin(row, unit);
  }
  var w = array<f32, gates * each>();
  var bias = array<f32, gates>();
  for (var g = 0u; g < gates; g++) {
    bias[g] = bias_at(g * units + unit);
    for (var i = 0u; i < each; i++) {
      let k = share + i * shares;
      let v = w_at(g * units + unit, min(k, units - 1u));
      w[g * each + i] = select(0.0, v, share < shares && k < units);
    }
  }
  workgroupBarrier();
  for (var t = 0u; t < p.steps; t++) {
    var x = array<f32, gates>();  // some compilers clear once what is declared in a loop
    if (share == 0u) {
      for (var g = 0u; g < gates; g++) {
        x[g] = input_at(t * p.input_t + row * p.input_s + g * units + unit);
      }
    }
    var s = array<f32, gates>();
    for (var i = 0u; i < each; i++) {
      let v = state[min(share + i * shares, units - 1u)];
      for (var g = 0u; g < gates; g++) { s[g] += w[g * each + i] * v; }
    }
    for (var g = 0u; g < gates; g++) { sums[g * lanes + lane] = s[g]; }
    workgroupBarrier();
    if (share == 0u) {
      var product = array<f32, gates>();
      for (var g = 0u; g < gates; g++) {
        var total = 0.0;
        for (var i = 0u; i < shares; i++) { total += sums[g * lanes + i * units + unit]; }
        product[g] = total + bias[g];
        product_set(t * p.product_t + row * p.product_s + g * units + unit, product[g]);
      }
      let h = cell(t * p.acts_t + row * p.acts_s + unit, t, row, unit, x, product);
      h_set(t * p.h_t + row * p.h_s + unit, h);
      state[unit] = h;
    }
    workgroupBarrier();
  }
}
)"};

constexpr std::string_view kRnn = R"(
fn begin(row: u32, unit: u32) {}
fn cell(a: u32, t: u32, row: u32, unit: u32, x: array<f32, gates>,
        product: array<f32, gates>) -> f32 {
  acts_set(a, x[0] + product[0]);
  return unary_value(kind, x[0] + product[0]);
}
)";

// The lstm_cell and gru_cell functions of kernels/recurrent.cpp.
constexpr std::string_view kLstm = R"(
var<private> kept: f32;
fn begin(row: u32, unit: u32) { kept = c_before_at(row * p.c_before_s_ + unit); }
fn cell(a: u32, t: u32, row: u32, unit: u32, x: array<f32, gates>,
        product: array<f32, gates>) -> f32 {
  let i = loom_sigmoid(x[0] + product[0]);
  let f = loom_sigmoid(x[1] + product[1]);
  let g = loom_tanh(x[2] + product[2]);
  let o = loom_sigmoid(x[3] + product[3]);
  kept = f * kept + i * g;
  acts_set(a, i);
  acts_set(a + units, f);
  acts_set(a + 2u * units, g);
  acts_set(a + 3u * units, o);
  c_set(t * p.c_t + row * p.c_s + unit, kept);
  return o * loom_tanh(kept);
}
)";

constexpr std::string_view kGru = R"(
var<private> kept: f32;
fn begin(row: u32, unit: u32) { kept = before_at(row * p.before_s + unit); }
fn cell(a: u32, t: u32, row: u32, unit: u32, x: array<f32, gates>,
        product: array<f32, gates>) -> f32 {
  let r = loom_sigmoid(x[0] + product[0]);
  let z = loom_sigmoid(x[1] + product[1]);
  let n = loom_tanh(x[2] + r * product[2]);
  acts_set(a, r);
  acts_set(a + units, z);
  acts_set(a + 2u * units, n);
  kept = (1.0 - z) * n + z * kept;
  return kept;
}
)";

constexpr int kLanes = 256;

// Weights of a gate that one invocation holds.
int64_t each_of(int64_t units) {
  return ceil_div(units, kLanes / units);
}

// Weights that exceed the registers would be read again in each step. An LSTM of 128 units then
// took 58 us a step; its separate commands take 10.
bool small(const Step& step) {
  constexpr int64_t kRegisters = 128;
  const int64_t units = step.h.cols();
  return units <= kLanes && gates_of(step.cell) * each_of(units) <= kRegisters;
}

Status run(Frame& frame, const Step& first, const Strides& strides, int64_t steps) {
  const int64_t units = first.h.cols();
  Call call(frame, kRecurrence);
  weights(call, first.w)
      .read("bias", first.bias)
      .read("before", first.before)
      .read("input", first.input)
      .write("product", first.product)
      .write("acts", first.acts)
      .write("h", first.h)
      .value("steps", steps)
      .value("input_t", strides.input)
      .value("product_t", strides.product)
      .value("acts_t", strides.acts)
      .value("h_t", strides.h)
      .constant("units", units)
      .constant("gates", gates_of(first.cell))
      .constant("shares", kLanes / units)
      .constant("each", each_of(units))
      .lanes(kLanes);
  switch (first.cell) {
    case Cell::rnn: call.constant("kind", static_cast<int64_t>(first.activation)).text(kRnn); break;
    case Cell::lstm:
      call.read("c_before", first.c_before)
          .write("c", first.c)
          .value("c_t", strides.c)
          .value("c_before_s_", first.c_before.row_stride)
          .text(kLstm);
      break;
    case Cell::gru: call.text(kGru); break;
  }
  return call.rows(first.h.rows());
}

}  // namespace

Result<int64_t> fuse_recurrence(Frame& frame, std::span<const Command> rest) {
  Step first;
  if (!step_at(rest, first) || !small(first)) return int64_t{0};
  Strides strides;
  int64_t taken = first.commands, steps = 1;
  for (Step last = first, next; step_at(rest.subspan(static_cast<size_t>(taken)), next);
       last = next, next = {}) {
    Strides more;
    if (!follows(last, next, more) || (steps > 1 && !(more == strides))) break;
    strides = more;
    taken += next.commands;
    ++steps;
  }
  if (steps < 2) return int64_t{0};
  LOOM_TRY(run(frame, first, strides, steps));
  return taken;
}

}  // namespace loom::core::webgpu
