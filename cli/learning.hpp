// Options and steps that `loom train` and `loom eval` share.
#pragma once

#include "verbs.hpp"

namespace loom::cli {

// Where the samples come from.
struct DataFlags {
  std::string path, labels, x = "x", y = "y", header = "auto", fit = "crop";
  int64_t targets = 1, ignored = INT64_MIN;
  std::string weights;

  // `required`: DATA must be given.
  void add(Command verb, bool required = true);
  // `classes`: whole numbers are labels.
  Result<DatasetOptions> options(bool classes) const;
};

// "97.35 %"
std::string percent(double share);

}  // namespace loom::cli
