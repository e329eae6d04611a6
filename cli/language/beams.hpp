// The texts of a beam search, as `loom run --beams` writes them.
#pragma once

#include "../shared/verbs.hpp"
#include "loom/beams.hpp"

namespace loom::cli {

struct BeamOutput {
  int64_t texts = 1;  // of those that are found
  bool json = false, quiet = false, no_echo = false;
};

// Returns an exit code.
int write_beams(const Model& model, const std::string& prompt, const std::vector<TokenId>& ids,
                BeamOptions options, const BeamOutput& how);

}  // namespace loom::cli
