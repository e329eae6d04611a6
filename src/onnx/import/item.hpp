// A parameter of a layer that an importer makes. Room-private.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.hpp"

namespace loom::core {

using Weights = std::shared_ptr<const std::vector<float>>;
inline Weights shared(std::vector<float> values) {
  return std::make_shared<const std::vector<float>>(std::move(values));
}

struct ItemParam {
  std::string path;  // below the item: "weight", "0/gamma"
  Shape shape;
  Weights values;
  // Not the values of one tensor of the file: training would learn another network.
  bool made_up = false;
  // Made up, all 1 or all 0, in the place of a weight that a later node may bring.
  bool neutral = false;
  bool frozen = false;  // no weight of the file: training leaves it as it is
};

}  // namespace loom::core
