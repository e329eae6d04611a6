// The shift and scale of inputs before a network, per value of a sample: x' = (x - shift) * scale.
// They are computed from the training samples; empty means none. Weights are useless without them,
// so every file with weights holds them too, or states that it does not.
#pragma once

#include <vector>

namespace loom::core {

struct Normalization {
  std::vector<float> shift, scale;
  bool empty() const { return shift.empty(); }
  bool operator==(const Normalization&) const = default;
};

}  // namespace loom::core
