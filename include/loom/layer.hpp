// A layer of any kind by name. Files and other languages use this form. layers.hpp, graph.hpp and
// blocks.hpp have a struct per kind, each of which converts to a Layer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "loom/export.hpp"

namespace loom {

struct LayerField {
  std::string name;
  std::variant<bool, int64_t, double, std::string, std::vector<int64_t>> value;
};

struct Layer {
  std::string type;                // "Dense": one of layer_types()
  std::vector<LayerField> fields;  // those that are left out have their defaults
  std::vector<Layer> children{};   // of Sequential, Residual, Parallel and Graph
  bool disabled = false;           // passes its input on
};
LOOM_API std::vector<std::string> layer_types();

// A number per axis, or one for all axes.
using Axes = std::vector<int64_t>;

}  // namespace loom
