// vocab.json and merges.txt: the byte-level BPE of folders older than tokenizer.json (GPT-2, OPT).
#pragma once

#include <string>

#include "base/result.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// A tokenizer.json with the contents of the two files and tokenizer_config.json (may be null) in
// `folder`; empty if one of the two is missing. Errors: those of files and of JSON; bad_file (a
// token that tokenizer_config.json requires before each text has no id).
Result<std::string> read_bpe_files(const std::string& folder, const JsonValue* config);

}  // namespace loom::core
