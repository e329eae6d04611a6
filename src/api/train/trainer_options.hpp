// Options of a trainer of the public interface, checked, as the rooms below take them.
#pragma once

#include "learn/trainer.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

// The options that trainers of networks and of meshes share.
template <class Options>
void set_step(const Options& from, TrainStepOptions& to) {
  to.optimizer = from.optimizer;
  if (from.loss != Loss::automatic) to.loss.kind = from.loss;
  to.clip = {from.clip, from.clip_limit};
  to.seed = from.seed;
  to.rule.kind = from.rule;
  to.rule.beta = static_cast<float>(from.rule_beta);
  if (from.rule_gate) to.rule.gate = static_cast<float>(*from.rule_gate);
}

Result<TrainerOptions> options_of(const loom::TrainerOptions& from);
// Numbers out of range, and options that do not go together.
Status check_trainer(const loom::TrainerOptions& o);

}  // namespace loom::core
