// Options of how a text is written: draws, penalties, grammars, guesses.
#pragma once

#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {

struct SamplingFlags {
  OptionFlags text, sampler;        // described by api/options/generation.toml
  std::vector<std::string> biases;  // "ID=NUMBER"
  std::vector<int64_t> banned;
  std::string grammar, schema;  // files
  int64_t lookup = 0;

  void add(Command verb);
  // Does the line have no flag of these but --max-tokens?
  bool only_length() const;
  // For generate(), with the contents of files and lists. Errors are usage errors.
  Result<GenerateOptions> options(uint64_t text_limit) const;

 private:
  void add_tokens(Command verb);
  void add_rules(Command verb);
};

}  // namespace loom::cli
