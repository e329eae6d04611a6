// The examples of the layer kinds (LayerDef::example) as networks, for `loom verify training` and
// the tests that run over every kind.
#include "lab/training_hash.hpp"

namespace loom::core {
namespace {

Result<KindNetwork> network_of(const LayerDef& def) {
  const LayerExample example = def.example();
  LOOM_ASSIGN(std::vector<LayerConfig> layers, make_layers(example.layers));
  LOOM_ASSIGN(NetworkSpec network, build_row(std::move(layers), example.input));
  return KindNetwork{def.name, std::move(network), example.batch};
}

}  // namespace

const std::vector<KindNetwork>& kind_networks() {
  static const std::vector<KindNetwork> all = [] {
    std::vector<KindNetwork> made;
    for (const LayerDef* def : layer_table()) {
      Result<KindNetwork> network = network_of(*def);
      if (network.ok()) made.push_back(std::move(*network));
    }
    return made;
  }();
  return all;
}

}  // namespace loom::core
