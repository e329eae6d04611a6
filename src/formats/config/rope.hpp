// The rotary positions of a config.json: rope_theta, rope_scaling (old style), rope_parameters
// (transformers 5; one object for all layers or one per kind of layer). Kinds are those of
// RopeKind, and mrope, which is default for texts. Any other kind is an Error naming it.
#pragma once

#include <string>

#include "families/family.hpp"
#include "formats/config/config.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// Fills the rope fields of `config`; head_dim must be set.
Status read_hf_rope(const JsonValue& json, const std::string& where, const ConfigRules& rules,
                    DecoderConfig& config);

}  // namespace loom::core
