// Prompts with a hole (fill in the middle; Bavarian et al., 2022, arXiv:2207.14255): what stands
// before and after it becomes one prompt, with the tokens that a family of models was trained with.
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
  std::string begin;              // of what fills it
  std::vector<InfillFile> files;  // other files of the same project, the nearest one last
  int64_t max_tokens = -1;        // that are to be written; -1: unsaid
};

struct InfillPrompt {
  std::vector<TokenId> ids;
  std::vector<TokenId> ends;  // tokens that end the text, those of the model among them
};

// What does not fit beside max_tokens (at most half of the context; unsaid: a quarter) is cut where
// it is farthest from the hole: the beginning of the prefix, which gets three quarters of the room
// or what the suffix leaves, and the end of the suffix. Files are taken from the last one on, as
// long as they fit whole. Text that spells a special token stays text.
// `reply`: as Service::tokenize() has it. Errors: unsupported (the tokenizer has no such tokens),
// out_of_range (no room at all), those of tokenizing.
Result<InfillPrompt> infill_prompt(const Service& service, const InfillParts& parts,
                                   const HttpReply& reply);

// The field input_extra: a list of {"filename", "text"}. Errors: invalid_argument.
Result<std::vector<InfillFile>> read_infill_files(const JsonValue& value, std::string_view name);

}  // namespace loom::core
