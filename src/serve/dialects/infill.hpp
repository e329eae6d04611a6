// Fill-in-the-middle prompts (Bavarian et al., 2022, arXiv:2207.14255). The text before and after a
// hole becomes one prompt, with the special tokens of the model family.
#pragma once

#include <string>
#include <vector>

#include "serve/service.hpp"

namespace loom::core {

struct InfillFile {
  std::string name, text;
};

struct InfillParts {
  std::string prefix, suffix;     // of the hole
  std::string begin;              // start of the filled text
  std::vector<InfillFile> files;  // other files of the same project, the nearest one last
  int64_t max_tokens = -1;        // to generate; -1 means unset
};

struct InfillPrompt {
  std::vector<TokenId> ids;
  std::vector<TokenId> ends;  // tokens that end the text, with those of the model
};

// Text that does not fit beside max_tokens (at most half of the context; a quarter if unset) is cut
// at the far ends from the hole. The start of the prefix is cut; the prefix gets three quarters of
// the room, or what the suffix leaves. The end of the suffix is cut. Files are taken from the last
// one on, while they fit whole. Text that spells a special token stays text. `reply`: as in
// Service::tokenize(). Errors: unsupported (the tokenizer has no such tokens), out_of_range (no
// room at all), those of tokenizing.
Result<InfillPrompt> infill_prompt(const Service& service, const InfillParts& parts,
                                   const HttpReply& reply);

// The field input_extra: a list of {"filename", "text"}. Errors: invalid_argument.
Result<std::vector<InfillFile>> read_infill_files(const JsonValue& value, std::string_view name);

}  // namespace loom::core
