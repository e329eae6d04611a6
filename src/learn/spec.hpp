// The description of a training run as plain data: loss, clipping, rules (option_structs.hpp).
// Optimizer and schedule are those of the public options.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "learn/option_structs.hpp"
#include "loom/training_options.hpp"
#include "ops/args.hpp"

namespace loom::core {

// Loss::automatic.
constexpr Loss default_loss(bool has_labels) {
  return has_labels ? Loss::cross_entropy : Loss::mse;
}

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
