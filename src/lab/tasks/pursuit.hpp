// Adaptation at run time: an agent in the unit square moves towards a target, then away from it,
// then towards it again, and learns from every step. docs/evaluation.md has the scenario;
// loom::AdaptationTracker measures accuracy by windows.
#pragma once

#include <optional>

#include "learn/spec.hpp"
#include "loom/evaluation.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

class ThreadPool;

struct PursuitSpec {
  std::optional<Rule> rule;  // unset: no learning
  double rate = 0.02;        // of SGD, one update per step
  // The agent sees the active task. Otherwise it must learn every change again.
  bool knows_task = true;
  uint64_t seed = 1;
  double duration = 15, window = 1;  // seconds; the task changes after each third
  // Steps per second of a clock that counts steps, so that a run is the same everywhere; 0 uses the
  // system clock.
  int64_t per_second = 1000;
};

struct PursuitRun {
  AdaptationReport report;
  int64_t not_finite = 0;  // steps with a non-finite answer or loss
  double seconds = 0;      // actual run time
};

// Network: Dense 8-32-64-64-64-32-4, tanh, sigmoid at the end; loss: mean squared error from the
// right one of four directions. (The original project uses leaky ReLU, with which random-feedback
// rules diverge.) Errors: those of a training step.
Result<PursuitRun> run_pursuit(const PursuitSpec& spec, const Ops& ops, ThreadPool& pool);

// The best rate of a rule on seeds other than those of the bench (docs/evaluation.md).
double pursuit_rate(Rule rule);

}  // namespace loom::core
