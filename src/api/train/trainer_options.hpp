// Options of a trainer of the public interface, checked, as the rooms below take them.
#pragma once

#include "api/train/fill_options.hpp"
#include "learn/trainer.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

TrainerSpec options_of(const loom::TrainerOptions& from);
// Numbers out of range, and options that do not go together.
Status check_trainer(const loom::TrainerOptions& o);
// The error of labels with a loss of numbers.
Error labels_need_classes();

}  // namespace loom::core
