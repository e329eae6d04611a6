// Options and steps that `loom train` and `loom eval` share.
#pragma once

#include "engine/training_files.hpp"
#include "verbs.hpp"

namespace loom::cli {

// Where the samples come from.
struct DataFlags {
  std::string path, labels, x = "x", y = "y", header = "auto";
  int64_t targets = 1;

  void add(Command verb);
  // `classes`: whole numbers are labels.
  // `names`: classes that training knows; `heads`: of the loss.
  Result<DatasetOptions> options(const MemoryBudget& memory, bool classes,
                                 std::vector<std::string> names = {},
                                 std::vector<int64_t> heads = {}) const;
};

// "97.35 %"
std::string percent(double share);

}  // namespace loom::cli
