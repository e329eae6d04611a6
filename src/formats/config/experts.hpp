// The experts of a decoder in config.json.
#pragma once

#include "families/family.hpp"
#include "formats/config/fields.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// Reads the experts of a class and the layers without them, after read_hf_layers(). Errors name the
// field.
Status read_hf_experts(const ConfigFields& fields, const DecoderFamily& family,
                       DecoderConfig& config);
// Adds the settings that read_hf_experts() reads.
void add_hf_experts(const DecoderConfig& config, const DecoderFamily& family, JsonValue& out);

}  // namespace loom::core
