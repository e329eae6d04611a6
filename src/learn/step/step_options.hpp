// The options of a training step, and the tensors that it keeps. Steps and optimizers include this
// file; it includes neither.
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
  bool documents = false;  // samples are rows of documents: set_documents()
  bool given = false;      // inputs besides the first are filled too: more(); else they are zeros
  bool native = false;
  // Frozen parameters are part of TrainStep::state(), matrices with a master. false: they stay as
  // they are packed, without memory of their own, and a file of the state needs their network.
  bool keep_frozen = true;
  // The last cell is an output stage: the loss is computed before it. A custom loss ignores this.
  bool before_stage = false;
  // Gradient checkpointing: groups of so many cells drop their activations, and the backward pass
  // computes them again. It takes less memory and one more forward pass, and gives the same bits. 0
  // keeps all activations.
  int64_t checkpoint_cells = 0;
  bool observed = false;  // TrainStep::observe() will be used
  // The loss and its gradient come from the caller in each step (TrainStep::run_with_loss); `loss`
  // says nothing then. Set by TrainStep itself.
  bool custom_loss = false;
  // The input of feedback links. false: zeros in every batch, so samples do not affect each other,
  // and the split into batches does not change results. true: the output of the previous batch at
  // the same index, for data that are parts of streams. No gradient flows from one batch to
  // another. See docs/state.md.
  bool carry_feedback = false;
  // For types with one scale per row. The scale stays while the range of its row (largest or mean
  // magnitude, or both ends) shrinks by no more than this share. If the row grows or shrinks
  // further, the scale is computed anew. 0 computes it anew at every step.
  double scale_band = 0.125;
  uint64_t seed = 0;
  // The number type that matrices are packed in from the first step on. Masters start from the
  // values of the network when the step is made. Cells with a dtype of their own keep it.
  std::optional<DType> dtype;
  // Gradients are kept, and the update is a recording of its own.
  bool gathers() const;
  // Records the forward pass in place of trace_network(), for networks that run otherwise, such as
  // the ticks of a mesh. If empty, the step is one pass over the cells.
  std::function<Result<TracedNetwork>(Trace& trace, const TraceOptions& options)> forward;
  // With `forward`: what it recorded, for learning rules (learn/rules/tick_signals.hpp). It must
  // outlive the step, at the same address.
  const TickPass* ticks = nullptr;
  // Recorded after everything else of a step: the values that the next step starts with.
  std::function<Status(const TracedNetwork& network, Recorder& recorder)> finish;
};

// A tensor of the training state, plain f32: "(0, 0, 0, 0)/weight", "(0, 0, 0, 0)/weight/scale"
// (the ranges its scales were taken from), and the state of the optimizer. A weight without a
// master is stored as its packed bytes, u8: "(0, 0, 0, 0)/weight/packed". With carry_feedback, "(0,
// 0, 0, 0)/feedback" of a cell is the next input of its feedback links. Averages of a weight or a
// buffer are "(0, 0, 0, 0)/weight/average" and "(0, 0, 0, 0)/weight/slow".
struct StateTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace loom::core
