// Options of how a text is written: draws, penalties, grammars, guesses.
#pragma once

#include "../shared/verbs.hpp"

namespace loom::cli {

struct SamplingFlags {
  GenerateOptions generate;
  std::vector<std::string> biases;  // "ID=NUMBER"
  std::vector<int64_t> banned;
  std::string grammar, schema;  // files
  int64_t lookup = 0;

  void add(Command verb);
  // For generate(), with the contents of files and lists. Errors are usage errors.
  Result<GenerateOptions> options(uint64_t text_limit) const;

 private:
  void add_draws(Command verb);
  void add_penalties(Command verb);
  void add_rules(Command verb);
};

}  // namespace loom::cli
