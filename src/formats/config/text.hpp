// The text files of a Hugging Face folder: tokenizer.json (or its predecessors),
// tokenizer_config.json and chat_template.jinja, all of which are optional.
#pragma once

#include <string>
#include <string_view>

#include "io/json/json.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Fills the text members of `out` (tokenizer, chat template, bos, eos). Errors: those of files,
// bad_file.
Status read_hf_text(const std::string& folder, ModelSource& out);

// config.json of a model: the original one, or one that reads back as its configuration.
std::string config_text(const ModelSource& source);

// tokenizer_config.json writes special tokens as strings or as objects with a "content". The result
// may be empty.
std::string hf_special_token(const JsonValue& config, std::string_view key);

// The text of a file; empty if it does not exist.
Result<std::string> read_if_there(const std::string& path);

}  // namespace loom::core
