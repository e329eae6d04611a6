// The experts of a decoder in GGUF: keys under the architecture's name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "families/family.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf/write.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// Whether a file of this architecture has experts.
bool has_gguf_experts(const Gguf& gguf, std::string_view architecture);
// Whether read_gguf_experts() reads this key, without the architecture's name.
bool is_gguf_expert_key(std::string_view key);
// Adds the settings of the experts of a class, by their names in config.json, to `json`, which has
// the other sizes.
Status read_gguf_experts(const Gguf& gguf, const DecoderFamily& family, JsonValue& json);
void write_gguf_experts(const DecoderConfig& config, const DecoderFamily& family,
                        GgufMetadata& metadata);

}  // namespace loom::core
