// Options of a trainer of the public interface, checked, as the rooms below take them.
#pragma once

#include "learn/trainer.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

Result<TrainerOptions> options_of(const loom::TrainerOptions& from);
// Numbers out of range, and options that do not go together.
Status check_trainer(const loom::TrainerOptions& o);

}  // namespace loom::core
