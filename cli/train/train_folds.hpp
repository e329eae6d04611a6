// loom train --folds K: K runs, each of which validates with the samples that the others train on.
#pragma once

#include "train_flags.hpp"

namespace loom::cli {

// The exit code of the verb.
int train_in_folds(const TrainFlags& f, const Engine& engine);

}  // namespace loom::cli
