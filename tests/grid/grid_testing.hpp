// Layers and grids of one row, for tests that need a network.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "grid/grid.hpp"

namespace loom::core::test {

inline LayerConfig layer(LayerKind kind, const std::vector<Field>& fields,
                         std::vector<LayerConfig> children = {}) {
  Result<LayerConfig> made = make_layer(kind, fields, std::move(children));
  EXPECT_TRUE(made.ok()) << made.error().str();
  return made.ok() ? std::move(*made) : LayerConfig{};
}

// A grid of one row holding `layers` in order.
inline GridSpec row_of(std::vector<LayerConfig> layers) {
  GridSpec grid(1, 1, static_cast<int64_t>(layers.size()), 1);
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_TRUE(grid.put({0, 0, static_cast<int64_t>(i), 0}, {std::move(layers[i])}).ok());
  }
  return grid;
}

// Whether weights of the kind can have adapters.
inline bool has_products(const LayerDef& def) {
  if (def.params == nullptr || def.container) return false;
  for (const LayerSketch& sketch : def.example().layers) {
    if (sketch.kind != def.kind) continue;
    std::vector<ParamSpec> specs;
    def.params(*make_layer(sketch.kind, sketch.fields), specs);
    for (const ParamSpec& spec : specs)
      if (spec.product) return true;
  }
  return false;
}

}  // namespace loom::core::test
