// The text side of a Hugging Face folder: tokenizer.json (or the files that it came after),
// tokenizer_config.json and chat_template.jinja, all of which may be absent.
#pragma once

#include <string>
#include <string_view>

#include "io/json.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Fills the text members of `out` (tokenizer, chat template, bos, eos). Errors: those of files,
// bad_file.
Status read_hf_text(const std::string& folder, ModelSource& out);

// config.json of a model: the one it came with, or one that reads back as its configuration.
std::string config_text(const ModelSource& source);

// tokenizer_config.json writes special tokens as strings or as objects with a "content"; "": none.
std::string hf_special_token(const JsonValue& config, std::string_view key);

// The text of a file; "" where there is none.
Result<std::string> read_if_there(const std::string& path);

}  // namespace loom::core
