// What a training step is made with, and the tensors that it keeps. Steps and optimizers include
// it; it includes neither.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "grid/traced.hpp"
#include "learn/spec.hpp"
#include "learn/step/param_rules.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct TickPass;

struct TrainStepOptions {
  LossSpec loss;
  Optimizer optimizer;  // unset constants are the usual ones: resolved()
  ClipSpec clip;
  NoiseSpec noise;
  AverageSpec average;
  LookaheadSpec lookahead;
  RuleSpec rule;           // where cells get their gradient from
  ParamRules rules;        // what is frozen, and what has a rate of its own
  int accumulate = 1;      // batches whose gradients are added up before an update, at most
  bool class_ids = false;  // softmax_ce: targets are class ids, not distributions
  bool masked = false;     // samples have lengths: set_lengths()
  bool given = false;      // inputs besides the first are filled too: more(); else they are zeros
  bool native = false;
  // Gradient checkpointing: activations inside groups of so many cells are not kept for the
  // backward pass but computed again there. Less memory, one more forward pass, the same bits. 0:
  // keep all.
  int64_t checkpoint_cells = 0;
  bool observed = false;  // TrainStep::observe() will be used
  // The loss and its gradient come from the caller in each step (TrainStep::run_with_loss); `loss`
  // says nothing then. Set by TrainStep itself.
  bool custom_loss = false;
  // What feedback links read. false: zeros in every batch, so that samples know nothing of each
  // other and no result depends on how they fall into batches. true: what the batch before gave, at
  // the same place of the batch, for data that are pieces of streams. No gradient flows from one
  // batch to another. docs/state.md.
  bool carry_feedback = false;
  // Types with one scale per row: the scale stays while the range of its row (largest or mean
  // magnitude, or both ends) shrinks by no more than this share of it, and is taken anew when the
  // row grows or shrinks further. 0: taken anew at every step.
  double scale_band = 0.125;
  uint64_t seed = 0;
  // What matrices are packed in from the first step on; masters start from the values that the
  // network holds when the step is made. Cells with a dtype of their own keep it.
  std::optional<DType> dtype;
  // Gradients are kept, and the update is a recording of its own.
  bool gathers() const;
  // Records the forward pass in place of trace_network(), for networks that run otherwise: the
  // ticks of a mesh. Empty: one pass over the cells.
  std::function<Result<TracedNetwork>(Trace& trace, const TraceOptions& options)> forward;
  // With `forward`: what it recorded, for learning rules (learn/rules/tick_signals.hpp). It must
  // outlive the step, at the same address.
  const TickPass* ticks = nullptr;
  // Recorded behind everything else of a step: what the next one begins with.
  std::function<Status(const TracedNetwork& network, Recorder& recorder)> finish;
};

// A tensor of the training state, plain f32: "(0, 0, 0, 0)/weight", "(0, 0, 0, 0)/weight/scale"
// (the ranges its scales were taken from) and what the optimizer keeps. A weight without a master
// is there as the bytes it is packed in, u8: "(0, 0, 0, 0)/weight/packed". With carry_feedback what
// feedback links read next, as "(0, 0, 0, 0)/feedback" of the cell that gave it. What follows a
// weight or a buffer: "(0, 0, 0, 0)/weight/average", "(0, 0, 0, 0)/weight/slow".
struct StateTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace loom::core
