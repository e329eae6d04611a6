// Link budgets of learning rules: how well the output of a block agrees with its target. h is the
// output of a block, s its signal and n the rows of the prediction. a is the step: 0.1 for
// gradients, 1 for rules that send targets. All are over the whole batch:
//   target   t = h - a n s
//   budget   (1 + h t / (|h| |t|)) / 2: 1 the same direction, 0.5 orthogonal or one of them zero,
//            0 opposite
//   gap      the root of the mean of (h - t)^2
//   factor   0 where the budget is below the gate, else 0.5 + budget / 2: what the gradients of the
//            block are multiplied by. Where it is not finite the block keeps its weights
//   cosine   of s and the gradient of the loss: s g / (|s| |g|), 0 where one of them is zero
// Private to the room.
#pragma once

#include "learn/rules/signals.hpp"

namespace loom::core {

// A row of SignalPlan::stats: budget, gap, 1 where the gate was closed, cosine, root of the mean of
// s^2.
enum LinkNumber : uint8_t { kLinkBudget, kLinkGap, kLinkClosed, kLinkCosine, kLinkSize };
constexpr int64_t kLinkNumbers = 5;

// Per block, the prediction last.
struct LinkTensors {
  std::vector<Tensor> outputs, signals;
  std::vector<Tensor> exact;  // gradients of the loss; empty: the signals themselves
};

// Records budgets where they are used or looked at: factors of all parameters (StepTensors) and
// SignalPlan::stats.
Status record_budgets(Trace& trace, const TrainStepOptions& options, StepTensors& t,
                      const LinkTensors& links);

}  // namespace loom::core
