// vocab.json and merges.txt: how folders older than tokenizer.json hold a byte-level BPE (GPT-2,
// OPT).
#pragma once

#include <string>

#include "base/result.hpp"
#include "io/json.hpp"

namespace loom::core {

// A tokenizer.json that says what the two files and tokenizer_config.json (null: none) in `folder`
// say; "": they are not both there. Errors: those of files and of JSON; bad_file (a token that
// tokenizer_config.json wants before each text has no id).
Result<std::string> read_bpe_files(const std::string& folder, const JsonValue* config);

}  // namespace loom::core
