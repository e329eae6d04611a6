// The description of a training run as plain data: loss, clipping, rules. Optimizer and
// schedule are those of the public options.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "loom/training_options.hpp"
#include "ops/args.hpp"

namespace loom::core {

// A loss and its options. The row of the loss says which options it reads (learn/loss/loss.hpp).
struct LossSpec {
  Loss kind = Loss::mse;   // not automatic
  float delta = 1.0f;      // huber
  float smoothing = 0.0f;  // softmax_ce: share of the target spread over all classes
  float gamma = 2.0f;      // focal: how much values that are right already count less
  float alpha = -1.0f;     // focal: weight of targets 1, those of 0 have the rest; below 0: none
  float quantile = 0.5f;   // quantile: share of the targets below the prediction
  // softmax_ce: widths of heads that are side by side in a row of the prediction, each with its own
  // target. If empty, there is one head.
  std::vector<int64_t> heads;

  int64_t blank = 0;  // ctc: the class that says nothing

  float margin = 1.0f;           // triplet, contrastive
  float temperature = 0.1f;      // infonce
  bool all_triplets = false;     // triplet: the mean over all, not the hardest of each anchor
  bool cross_view_only = false;  // pairs(): rows of a sample are compared with other ones alone

  // Properties of the row. A target of sequence() belongs to all rows of a sample, one of pairs()
  // to two rows of a batch; other targets belong to a row.
  bool sequence() const;
  bool pairs() const;
  bool has_classes() const;         // outputs are logits of classes, targets labels or shares
  bool has_binary_targets() const;  // targets are 0 or 1, and an output above 0 says 1
};
// Loss::automatic.
constexpr Loss default_loss(bool has_labels) {
  return has_labels ? Loss::cross_entropy : Loss::mse;
}

struct ClipSpec {
  Clip kind = Clip::none;
  float limit = 1.0f;
};
// Normal noise on gradients, after clipping: of update t, from 0, with deviation std / (1 +
// t)^(fade / 2) (Neelakantan et al., 2015, with fade 0.55).
struct NoiseSpec {
  double std = 0;  // 0 if unknown
  double fade = 0;
  double deviation(int64_t t) const;
};

// Averages of the weights and of what layers keep beside them (means of BatchNorm), which are what
// is evaluated and saved. decay: of an exponential average over all updates, a += (1 - decay) (w -
// a), which begins as the weights after the first one. from: the mean over the ends of all epochs
// from that one on (stochastic weight averaging, Izmailov et al., 2018). At most one of them.
struct AverageSpec {
  double decay = 0;
  int64_t from = 0;
  bool any() const { return decay > 0 || from > 0; }
};

// The options of a rule. learn/rules/signals.hpp describes where cells get their signal from.
struct RuleSpec {
  Rule kind = Rule::back_propagation;
  float beta = 0.6f;  // of rules that read it: share of the way to the target, (0, 1]
  // Link budgets (learn/rules/budgets.hpp): blocks with a budget below the gate learn nothing,
  // others at the rate of their budget. 0 disables budgets. The default is that of the rule.
  std::optional<float> gate = {};
  float noise = 0.1f;          // dtp: deviation of what inverses learn to take away
  float inverse_rate = 2e-3f;  // dtp: rate of the inverses, which RMSprop trains
  float threshold = 2.0f;      // forward_forward: goodness that parts right labels from wrong
  float label_scale = 1.0f;    // forward_forward: deviation of the pattern of a label
  float temperature = 0.0f;    // forward_forward: of the goodness; 0 takes the width of a layer
  bool stats = false;          // TrainStep::link_stats() is wanted

  bool has_beta() const;  // the row of the rule reads it: learn/rules/rule.hpp
  float min_budget() const;
  bool has_budgets() const { return min_budget() > 0; }
};

// Every so many updates slow weights s += share (w - s), and w becomes s (Zhang et al., 2019).
struct LookaheadSpec {
  int64_t every = 0;  // 0 disables it
  double share = 0.5;
};

// A step is an update. With TrainStepOptions::accumulate it takes several batches, and the last of
// an epoch takes those that are left. Let s be the steps since the end of the warm-up, and n those
// from there to the end of the run. Let t = min(s / n, 1) and e = floor(s / steps per epoch).
// half(t) = (1 + cos(pi t)) / 2 falls from 1 to 0.
//   constant         rate
//   step             rate gamma^floor(e / every)
//   multi_step       rate gamma^(milestones passed), which are epochs of the run, warm-up included
//   exponential      rate gamma^e
//   cosine           floor + (rate - floor) half(t)            (Loshchilov and Hutter, 2017)
//   cosine_restarts  floor + (rate - floor) half(s mod p / p), p = the steps of `every` epochs
//   linear           rate + (floor - rate) t
//   polynomial       floor + (rate - floor) (1 - t)^power
//   one_cycle        from rate / 25 up to rate at t = 0.3, down to rate / 10^4 at t = 1, each along
//                    a half cosine                             (Smith and Topin, 2019)
//   plateau          rate gamma^(how often the loss did not improve for `patience` epochs)
// Every kind may begin with a warm-up of `warmup` steps: in its step i, from 0, the rate is
// (i + 1) / warmup of what the schedule has at s = 0. So it ends where the schedule begins.
// The learning rate of step `step` (from 0) of `total`, `per_epoch` steps an epoch. rate: at the
// start of the schedule. plateau_drops: how often the plateau was met.
double learning_rate(const Schedule& schedule, double rate, int64_t step, int64_t total,
                     int64_t per_epoch, int64_t plateau_drops);

}  // namespace loom::core
