// Per-layer settings in a config.json: sliding windows (layer_types or the rule of the class),
// layers without rotary positions, rotary positions of sliding layers.
#pragma once

#include <string>

#include "families/family.hpp"
#include "formats/config/config.hpp"

namespace loom::core {

// Fills config.layers; the sizes of `config` must be set.
Status read_hf_layers(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config);

}  // namespace loom::core
