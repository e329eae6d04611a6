// How inputs are shifted and scaled before a network sees them, per value of a sample:
// x' = (x - shift) * scale. Learned from the samples that train; empty: not at all. Weights mean
// nothing without it, so every file that holds them holds it, too, or says that it does not.
#pragma once

#include <vector>

namespace loom::core {

struct Normalization {
  std::vector<float> shift, scale;
  bool empty() const { return shift.empty(); }
  bool operator==(const Normalization&) const = default;
};

}  // namespace loom::core
