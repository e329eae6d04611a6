// loom train --folds K: K runs, each of which validates with the samples that the others train on.
#pragma once

#include "train_flags.hpp"

namespace loom::cli {

// The exit code of the verb.
int train_in_folds(const TrainFlags& f, const Engine& engine);

// The file of a fold: "net.fold2.entity" of "net.entity".
std::string fold_name(const std::string& path, int64_t fold);

}  // namespace loom::cli
