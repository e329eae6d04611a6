// What to train with, as plain data: loss, optimizer, clipping, schedule. Names are parsed here and
// nowhere else; an unknown one is an Error that lists the known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ops/args.hpp"

namespace loom {

struct LossSpec {
  LossKind kind = LossKind::mse;
  float delta = 1.0f;      // huber
  float smoothing = 0.0f;  // softmax_ce: share of the target spread over all classes
  // softmax_ce: widths of heads that stand side by side in a row of the prediction, each with a
  // target of its own; empty: one head.
  std::vector<int64_t> heads;
};
// mse, mae, huber, softmax_ce (cross_entropy), bce, kl, cosine.
Result<LossKind> parse_loss(std::string_view name);
std::string_view loss_name(LossKind kind);

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adam;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.0f;
  int64_t history = 0;  // > 0: L-BFGS with so many pairs; `kind` and the betas say nothing then
  bool lbfgs() const { return history > 0; }
  bool has_m() const;
  bool has_v() const;
  bool corrects() const;  // updates divide by 1 - beta^t
};
// sgd, momentum, nesterov, rmsprop, adam, adamw, lion, lbfgs, each with its usual constants.
Result<OptimizerSpec> parse_optimizer(std::string_view name);
std::string_view optimizer_name(const OptimizerSpec& spec);

// norm: the norm of all gradients together; layer: of each parameter alone; value: each number.
enum class ClipKind : uint8_t { none, norm, layer, value };
struct ClipSpec {
  ClipKind kind = ClipKind::none;
  float limit = 1.0f;
};
Result<ClipKind> parse_clip(std::string_view name);

enum class ScheduleKind : uint8_t {
  constant,
  step,             // rate * gamma^(epoch / every)
  multi_step,       // rate * gamma^(milestones passed)
  exponential,      // rate * gamma^epoch
  cosine,           // from rate to floor over all steps (Loshchilov and Hutter, 2017)
  cosine_restarts,  // the same over `every` epochs, again and again
  linear,           // warm-up, then down to floor in a straight line
  polynomial,       // floor + (rate - floor) (1 - t)^power
  one_cycle,        // up to rate over the first 30 %, down to rate / 10^4 (Smith and Topin, 2019)
  plateau           // times gamma when the loss has not improved for `patience` epochs
};
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::constant;
  double rate = 1e-3, floor = 0.0, gamma = 0.1, power = 2.0;
  int64_t every = 10;               // epochs
  std::vector<int64_t> milestones;  // epochs
  int64_t warmup = 0;               // steps, for every kind: the rate rises in a straight line
  int64_t patience = 5;             // epochs
};
Result<ScheduleKind> parse_schedule(std::string_view name);
std::string_view schedule_name(ScheduleKind kind);

// The learning rate of step `step` (from 0) of `total`, `per_epoch` steps an epoch. plateau_drops:
// how often the plateau was met.
double learning_rate(const ScheduleSpec& spec, int64_t step, int64_t total, int64_t per_epoch,
                     int64_t plateau_drops);

}  // namespace loom
