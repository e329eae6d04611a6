// Steps that become part of the convolution before them when a graph is opened: batch norms with
// constants, as other weights (rounded once more), and activations that its kernel has. This is
// done only if nothing else reads the values between them. See body.hpp.
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/neural/windows.hpp"

namespace loom::core::evaluate {
namespace {

class Fuser {
 public:
  Fuser(Body& body, Runtime& rt)
      : body_(body), rt_(rt), reads_(body.fixed.size()), maker_(body.fixed.size(), -1) {}
  Status run();

 private:
  void count();
  bool is(int step, std::string_view op) const;
  int before(const Step& step, size_t input) const;
  const Value* constant(const Step& step, size_t input) const;
  Status norm(Step& step);
  Status activation(Step& step);
  void take_over(Step& conv, Step& step);
  int reads(int slot_index) const { return reads_[static_cast<size_t>(slot_index)]; }
  Step& at(int i) { return body_.steps[static_cast<size_t>(i)]; }

  Body& body_;
  Runtime& rt_;
  std::vector<int> reads_, maker_;  // of each place: how often it is read, the step that gives it
};

void Fuser::count() {
  for (size_t k = 0; k < body_.steps.size(); ++k) {
    const Step& step = body_.steps[k];
    for (const auto* list : {&step.in, &step.around}) {
      for (const int i : *list) {
        if (i >= 0) ++reads_[static_cast<size_t>(i)];
      }
    }
    for (const int i : step.out) {
      if (i >= 0) maker_[static_cast<size_t>(i)] = static_cast<int>(k);
    }
  }
  for (const int i : body_.outputs) ++reads_[static_cast<size_t>(i)];
}

bool Fuser::is(int step, std::string_view op) const {
  if (step < 0) return false;
  const Step& s = body_.steps[static_cast<size_t>(step)];
  return s.op != nullptr && s.op->domain.empty() && s.op->name == op;
}

int Fuser::before(const Step& step, size_t input) const {
  const int slot_index = input < step.in.size() ? step.in[input] : -1;
  return slot_index < 0 ? -1 : maker_[static_cast<size_t>(slot_index)];
}

// Null if there is no constant of type float32.
const Value* Fuser::constant(const Step& step, size_t input) const {
  if (input >= step.in.size() || step.in[input] < 0) return nullptr;
  const Slot& slot = body_.fixed[static_cast<size_t>(step.in[input])];
  const bool fits = slot.kind == Slot::Kind::tensor && slot.tensor.type == OnnxType::f32;
  return fits ? &slot.tensor : nullptr;
}

// The convolution takes over the output of `step`, which becomes empty and is dropped.
void Fuser::take_over(Step& conv, Step& step) {
  conv.out[0] = step.out[0];
  maker_[static_cast<size_t>(step.out[0])] = static_cast<int>(&conv - body_.steps.data());
  step.op = nullptr;
}

Status Fuser::norm(Step& step) {
  const int conv = before(step, 0);
  if (!is(conv, "Conv") || reads(step.in[0]) != 1 || at(conv).prepared == nullptr) return {};
  Step& from = at(conv);
  const Value* list[4];  // scale, shift, mean, variance
  const Value* w = constant(from, 1);
  const bool biased = from.in.size() > 2 && from.in[2] >= 0;
  const Value* bias = biased ? constant(from, 2) : nullptr;
  if (w == nullptr || (biased && bias == nullptr) || step.in.size() != 5) return {};
  const int64_t filters = w->dims[0], patch = w->count() / filters;
  for (size_t i = 0; i < 4; ++i) {
    list[i] = constant(step, i + 1);
    if (list[i] == nullptr || list[i]->count() != filters) return {};
  }
  for (size_t i = 1; i < step.out.size(); ++i) {
    if (step.out[i] >= 0 && reads(step.out[i]) > 0) return {};
  }
  const Call of_norm(*step.node, step.opset, rt_, {}, {});
  if (of_norm.integer("training_mode", 0) != 0 || of_norm.integer("spatial", 1) != 1) return {};
  const double epsilon = of_norm.real("epsilon", 1e-5F);
  LOOM_ASSIGN(Value weights, Value::make(rt_.memory, OnnxType::f32, w->dims));
  LOOM_ASSIGN(Value shift, Value::make(rt_.memory, OnnxType::f32, {filters}));
  const auto real = [](const Value* v, int64_t i) {
    return static_cast<double>(v->data<float>()[i]);
  };
  for (int64_t f = 0; f < filters; ++f) {
    const double factor = real(list[0], f) / std::sqrt(real(list[3], f) + epsilon);
    if (!std::isfinite(factor)) return {};
    for (int64_t k = f * patch; k < (f + 1) * patch; ++k)
      weights.data<float>()[k] = static_cast<float>(real(w, k) * factor);
    const double was = bias == nullptr ? 0 : real(bias, f);
    shift.data<float>()[f] =
        static_cast<float>((was - real(list[2], f)) * factor + real(list[1], f));
  }
  const auto slot_index = static_cast<int>(body_.fixed.size());
  body_.fixed.push_back(Slot::of(std::move(weights)));
  body_.fixed.push_back(Slot::of(std::move(shift)));
  reads_.resize(body_.fixed.size(), 1);
  maker_.resize(body_.fixed.size(), -1);
  from.in = {from.in[0], slot_index, slot_index + 1};
  LOOM_TRY(prepare_step(from, body_, rt_));
  take_over(from, step);
  return {};
}

// x sigmoid(x) as two steps, or an operator that is one of the kernel's functions.
Status Fuser::activation(Step& step) {
  int conv = before(step, 0);
  Activation function = Activation::linear;
  int gate = -1;
  if (is(static_cast<int>(&step - body_.steps.data()), "Mul")) {
    for (const size_t i : {0UL, 1UL}) {
      const int other = before(step, i);
      if (!is(other, "Sigmoid") || before(at(other), 0) != before(step, 1 - i)) continue;
      if (at(other).in[0] != step.in[1 - i] || reads(step.in[i]) != 1) continue;
      gate = other, conv = before(step, 1 - i), function = Activation::silu;
      break;
    }
  } else if (step.op->name == "HardSwish") {
    function = Activation::hard_swish;
  } else if (step.op->name == "Tanh") {
    function = Activation::tanh;
  } else if (step.op->name == "Sigmoid") {
    function = Activation::sigmoid;
  }
  if (function == Activation::linear || !is(conv, "Conv")) return {};
  Step& from = at(conv);
  if (from.prepared == nullptr || reads(from.out[0]) != (gate < 0 ? 1 : 2)) return {};
  const std::shared_ptr<const Prepared> made = with_activation(from.prepared, function);
  if (made == nullptr) return {};
  from.prepared = made;
  if (gate >= 0) at(gate).op = nullptr;
  take_over(from, step);
  return {};
}

Status Fuser::run() {
  count();
  for (size_t k = 0; k < body_.steps.size(); ++k) {
    if (is(static_cast<int>(k), "BatchNormalization")) LOOM_TRY(norm(body_.steps[k]));
  }
  for (size_t k = 0; k < body_.steps.size(); ++k) {
    const Step& step = body_.steps[k];
    // The gate of a product is not taken before the product is seen.
    const bool gates = is(static_cast<int>(k), "Sigmoid") && reads(step.in[0]) != 1;
    if (step.op != nullptr && step.op->domain.empty() && !gates)
      LOOM_TRY(activation(body_.steps[k]));
  }
  std::erase_if(body_.steps, [](const Step& s) { return s.op == nullptr; });
  return {};
}

}  // namespace

Status fuse(Body& body, Runtime& rt) {
  return Fuser(body, rt).run();
}

}  // namespace loom::core::evaluate
