// Adaptation while it runs: an agent in the unit square that shall go towards a target, then away
// from it, then towards it again, and learns from every step it takes. The scenario of
// docs/evaluation.md; how accuracy is kept by windows is loom::AdaptationTracker.
#pragma once

#include <optional>

#include "learn/spec.hpp"
#include "loom/evaluation.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

class ThreadPool;

struct PursuitSpec {
  std::optional<Rule> rule;  // empty: nothing is learned
  double rate = 0.02;        // of SGD, one update for every step
  // The agent sees which task is in force. Otherwise every change has to be learned anew.
  bool told = true;
  uint64_t seed = 1;
  double duration = 15, window = 1;  // seconds; the task changes after each third
  // Steps in a second of a clock that counts steps, so that a run is the same everywhere; 0: the
  // clock of the system.
  int64_t per_second = 1000;
};

struct PursuitRun {
  AdaptationReport report;
  int64_t not_finite = 0;  // steps whose answer or loss was no finite number
  double seconds = 0;      // that it really took
};

// Network: Dense 8-32-64-64-64-32-4, tanh, sigmoid at the end; loss: mean squared error from the
// one right direction of four. (The original has leaky ReLU, with which rules of random feedback
// grow without bound.) Errors: those of a training step.
Result<PursuitRun> run_pursuit(const PursuitSpec& spec, const Ops& ops, ThreadPool& pool);

// The rate that did best for a rule on seeds other than those of the bench (docs/evaluation.md).
double pursuit_rate(Rule rule);

}  // namespace loom::core
