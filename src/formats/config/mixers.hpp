// The scans and gated convolutions of a decoder in config.json.
#pragma once

#include "families/family.hpp"
#include "formats/config/fields.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// Reads the mixers of a class and the blocks that have them. Errors name the field.
Status read_hf_mixers(const ConfigFields& fields, const DecoderFamily& family,
                      DecoderConfig& config);
// Rounds the inner size as LFM2 does: two thirds, times a factor, up to a multiple. Reads the older
// names of settings too.
Status read_rounded_inner(const ConfigFields& fields, DecoderConfig& config);
// Adds the settings that read_hf_mixers() reads.
void add_hf_mixers(const DecoderConfig& config, const DecoderFamily& family, JsonValue& out);

}  // namespace loom::core
