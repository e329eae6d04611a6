#include "api/train/trainer_options.hpp"

#include "base/text.hpp"
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

Result<TrainerOptions> options_of(const loom::TrainerOptions& from) {
  TrainerOptions o;
  set_step(from, o.step);
  o.step.loss.delta = from.huber_delta;
  o.step.loss.smoothing = from.label_smoothing;
  o.step.loss.heads = from.heads;
  o.step.loss.gamma = from.focal_gamma;
  o.step.loss.alpha = from.focal_alpha.value_or(-1.0f);
  o.step.loss.quantile = from.quantile;
  o.step.loss.margin = from.margin;
  o.step.loss.temperature = from.temperature;
  o.step.loss.all_triplets = from.all_triplets;
  o.step.loss.cross_view_only = from.pairs_across;
  o.step.loss.blank = from.blank;
  o.step.accumulate = static_cast<int>(from.accumulate);
  o.step.rules.freeze = from.freeze;
  o.step.rules.unfreeze = from.unfreeze;
  for (const RateFor& r : from.rate_for) o.step.rules.rates.push_back({r.pattern, r.factor});
  o.step.average = {from.ema, from.swa_from};
  o.step.lookahead = {from.lookahead, from.lookahead_share};
  o.step.noise = {from.gradient_noise, from.gradient_noise_fade};
  RuleSpec& rule = o.step.rule;
  rule.noise = static_cast<float>(from.rule_noise);
  rule.inverse_rate = static_cast<float>(from.rule_inverse_rate);
  rule.threshold = static_cast<float>(from.rule_threshold);
  rule.label_scale = static_cast<float>(from.rule_label_scale);
  rule.temperature = static_cast<float>(from.rule_temperature);
  o.step.native = from.native;
  o.step.carry_feedback = from.carry_feedback;
  o.step.checkpoint_cells = from.checkpoint_cells;
  o.schedule = from.schedule;
  o.rate = from.rate;
  o.batch = from.batch.value_or(o.batch);
  o.shuffle = from.shuffle;
  o.class_weights = from.class_weights;
  o.balanced_weights = from.balanced_weights;
  o.balance = from.balance;
  o.metrics = from.metrics;
  o.augment = AugmentSpec{from.augment, {}, {}};
  o.seed = from.seed;
  return o;
}

Status check_trainer(const loom::TrainerOptions& o) {
  LOOM_TRY(loom::check_options(o));
  LOOM_TRY(check_metrics(o.metrics));
  if (!optimizer_def(o.optimizer.kind).all_samples) return {};
  const std::string_view name = optimizer_name(o.optimizer.kind);
  if (AugmentSpec{o.augment, {}, {}}.any())
    return invalid(cat(name, " needs the same samples in every update; leave augmentation out"));
  if (o.balance)
    return invalid(cat(name, " needs every sample in every update; leave balance out"));
  return {};
}

}  // namespace loom::core
