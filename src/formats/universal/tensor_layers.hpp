// Tensors of a file as layers, as far as their names and shapes tell. The universal loader arranges
// them into a network; other callers only list them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/weights/tensor_file.hpp"
#include "layers/core/config.hpp"

namespace loom::core {

struct TensorLayer {
  std::string name;  // common part of its tensors' names: "model.layers.3.self_attn"
  LayerConfig config;
  std::vector<std::pair<std::string, size_t>> tensors;  // the layer's parameter, and the entry
};

// In the natural order of their names. Tensors that are not a layer by themselves are left out.
// Errors: unsupported (shapes that contradict the names).
Result<std::vector<TensorLayer>> tensor_layers(const TensorFile& file);

// "a.10.b" after "a.2.b": numbers compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace loom::core
