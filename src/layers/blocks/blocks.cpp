#include "layers/blocks/blocks.hpp"

namespace loom::core {

#define LOOM_BLOCK(definition) extern const LayerDef definition;
#include "layers/blocks/blocks.def"
#undef LOOM_BLOCK

namespace {

const LayerDef* const kBlocks[] = {
#define LOOM_BLOCK(definition) &definition,
#include "layers/blocks/blocks.def"
#undef LOOM_BLOCK
};

}  // namespace

std::span<const LayerDef* const> block_table() {
  return kBlocks;
}

const LayerDef* find_layer(std::string_view name) {
  for (const std::span<const LayerDef* const> table : {layer_table(), block_table()}) {
    for (const LayerDef* def : table) {
      if (def->name == name) return def;
    }
  }
  return nullptr;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const std::span<const LayerDef* const> table : {layer_table(), block_table()}) {
    for (const LayerDef* def : table) names.emplace_back(def->name);
  }
  return names;
}

}  // namespace loom::core
