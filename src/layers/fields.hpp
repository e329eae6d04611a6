// Fields of a layer by name, for readers and writers of formats. Layers themselves know the index.
#pragma once

#include <string_view>

#include "layers/layer.hpp"

namespace loom::core {

// Index of the field called `name` in layer.def->fields; -1: the kind has none of that name.
inline int field_index(const LayerConfig& layer, std::string_view name) {
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    if (layer.def->fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace loom::core
