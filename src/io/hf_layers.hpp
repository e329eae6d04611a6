// What differs from layer to layer in a config.json: sliding windows (layer_types or the rule of
// the class), layers without rotary positions, rotary positions of sliding layers.
#pragma once

#include <string>

#include "io/hf_architecture.hpp"
#include "io/hf_config.hpp"

namespace loom::core {

// Fills config.layers; the sizes of `config` must be set.
Status read_hf_layers(const ConfigFields& fields, const HfArchitecture& architecture,
                      HfConfig& config);

}  // namespace loom::core
