// Records the signals of a mesh (learn/rules/tick_signals.hpp). Rows of rules call it. Private to
// the folder.
#pragma once

#include "learn/rules/rule.hpp"
#include "learn/rules/tick_signals.hpp"

namespace loom::core {

class TickSignals {
 public:
  TickSignals(Trace& to, const Network& of, const TrainStepOptions& how, StepTensors& step);

  // Signals of all slots and ticks; empty ones are zero.
  Status record(const Tensor& dy);
  // dL/dS_t[k].
  Status exact(const Tensor& dy, std::vector<std::vector<Tensor>>& to);
  // The trained slot takes e alone, and others their signals: gradients of readers are left out.
  Status hand_to(Differentiator& d, const Tensor& dy);
  // All ticks of a slot as one matrix.
  Result<Tensor> together(size_t k, const std::vector<std::vector<Tensor>>& of);

  // For RuleDef::ticks.

  // Tick `now` of numbers that are stored tick after tick, in the shape that slot k commits.
  Tensor part(const Tensor& all, size_t k, size_t now) const;
  Tensor shaped(Tensor signal, size_t k) const;

  Trace& trace;
  TraceBuilder s;
  const Network& network;
  const TrainStepOptions& options;
  StepTensors& t;
  const TickPass& pass;
  std::vector<std::vector<Tensor>> made;  // [tick][slot]

 private:
  void each_firing(auto&& f);
  Status direct(const Tensor& from, const Tensor& dy);

  const RuleDef& def_;
};

}  // namespace loom::core
