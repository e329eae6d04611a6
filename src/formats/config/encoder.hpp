// config.json of the encoders of `transformers`, and the files of sentence-transformers next to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "llm/model_source.hpp"

namespace loom::core {

// Does "architectures" name a class of encoders that is read here?
bool is_encoder_config(std::string_view config_json);
// Errors: bad_file (a field that cannot be), unsupported (one that is not honoured), by name.
Result<EncoderConfig> parse_encoder_config(std::string_view config_json, const std::string& where);

// Fills the configuration of `out` from its config_json and generation_json: that of a decoder, or
// of an encoder with the members that both have.
Status read_model_config(const std::string& where, ModelSource& out);
// Only config.json.
Result<DecoderConfig> read_model_config(std::string_view config_json,
                                        std::string_view generation_json, const std::string& where);

// modules.json, 1_Pooling/config.json, config_sentence_transformers.json and
// sentence_bert_config.json of a folder. None: it has no modules.json. Errors: unsupported (a
// module or a pooling that is not run here, by name).
Result<std::optional<EmbeddingSettings>> read_sentence_folder(const std::string& folder);

// The settings as one JSON text, which .entity files hold, and back.
std::string embedding_json(const EmbeddingSettings& settings);
Result<EmbeddingSettings> parse_embedding_json(std::string_view json, const std::string& where);

}  // namespace loom::core
