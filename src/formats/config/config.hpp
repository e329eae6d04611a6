// config.json and generation_config.json of Hugging Face checkpoints, read and written; .entity
// files have them too. Every field that changes the computation is read; one whose value we cannot
// honour is an Error naming the field. Absent fields take the defaults of the `transformers` class
// of the architecture.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "io/json/json.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// `text` is config.json; `generation_text` may be empty. `where` names config.json in messages.
// Errors: bad_file (malformed or inconsistent), unsupported (well-formed, but not this engine).
Result<DecoderConfig> parse_hf_config(std::string_view text, std::string_view generation_text,
                                      const std::string& where);

// The same for a parsed object, or one made from another format: a single reader has the same
// bounds and errors for all. generation: may be null.
Result<DecoderConfig> read_hf_config(const JsonValue& json, const JsonValue* generation,
                                     const std::string& where);

// A config.json that reads back as `config`, for models that come from elsewhere. The ids of
// config.eos_token_ids are in it too.
std::string hf_config_json(const DecoderConfig& config);

}  // namespace loom::core
