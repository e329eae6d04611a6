// Learning rules. Each is one row in a file of this folder; registry.cpp, which is generated from
// api/options/training.toml, lists the rows. Code elsewhere asks the row, and never which rule it
// is. learn/rules/signals.hpp explains the symbols of their formulas. The functions of a row are
// private to the room; its facts are not.
#pragma once

#include <span>
#include <string>

#include "learn/spec.hpp"

namespace loom::core {

class Network;
class SignalBuilder;
class SignalPlanner;
class TickSignals;
class Trace;
class TraceBuilder;
struct Contrast;
struct StepTensors;
struct TrainStepOptions;

// An option of RuleSpec that only some rules read. Checkpoints have it under `key`.
struct RuleOption {
  const char* key;
  float RuleSpec::*real;
  bool unless_zero = false;  // checkpoints omit 0
};
constexpr RuleOption kBetaOption{"rule_beta", &RuleSpec::beta};

struct RuleDef {
  bool end_to_end = false;     // gradients of the loss cross all cuts: back-propagation
  bool gradients = false;      // signals are gradients of the loss
  bool needs_targets = false;  // signals come from targets, not from dL/dy alone
  bool damped = false;         // the signal of the prediction is beta e
  bool linear_slopes = false;  // activations inside of blocks have the slope 1
  float gate = 0;              // RuleSpec::gate if it is unset
  std::span<const RuleOption> options = {};

  // The tensor, of the shape of dy, that one random matrix per cut turns into signals. A rule with
  // it needs no other function, has a form through ticks, and may be steady.
  Result<Tensor> (*direct)(TraceBuilder& s, const TrainStepOptions& options, const StepTensors& t,
                           const Tensor& dy) = nullptr;

  // Checks and prepares a network that is cut already, then each cut.
  Status (*plan)(SignalPlanner& planner) = nullptr;
  Status (*plan_cut)(SignalPlanner& planner, size_t cut) = nullptr;
  // The signal of the prediction, if it is neither e nor beta e.
  Result<Tensor> (*top)(SignalBuilder& b, const Tensor& dy) = nullptr;
  // The signal of a cut; those above it are known.
  Result<Tensor> (*below)(SignalBuilder& b, size_t cut) = nullptr;
  // Recorded after the last signal.
  Status (*after)(SignalBuilder& b) = nullptr;

  // Records passes of its own in place of signals (learn/rules/forward_forward.hpp).
  Result<Contrast> (*contrast)(Trace& trace, const Network& network,
                               const TrainStepOptions& options, const StepTensors& t,
                               const Tensor& dy) = nullptr;
  // Records the signals of all slots and ticks of a mesh into `b`.
  Status (*ticks)(TickSignals& b, const Tensor& dy) = nullptr;

  bool has_ticks() const { return gradients || direct != nullptr || ticks != nullptr; }
  bool steady() const { return direct != nullptr; }
};

const RuleDef& rule_def(loom::Rule value);  // registry.cpp

// The names of rules with a fact, but for back-propagation: "chain, dfa and drtp".
std::string rules_with(bool (RuleDef::*fact)() const);

}  // namespace loom::core
