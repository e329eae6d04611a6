// Options and steps that `loom train` and `loom eval` share.
#pragma once

#include "engine/training_files.hpp"
#include "verbs.hpp"

namespace loom::cli {

// Where the samples come from.
struct DataFlags {
  std::string path, labels, x = "x", y = "y";
  int64_t targets = 1;

  void add(Command verb);
  // `names`: classes that training knows; `classes`: whole numbers are labels.
  DatasetOptions options(bool classes, std::vector<std::string> names = {}) const;
};

// Is this file safetensors, and no description?
bool holds_weights(const std::string& path);

// "97.35 %"
std::string percent(double share);

}  // namespace loom::cli
