// Which parameters are trained, and how fast: patterns over their paths, as "(0, 0, 0, 0)/weight".
// In a pattern * stands for any characters, also none, and ? for one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grid/network.hpp"

namespace loom::core {

// Parameters whose path matches are trained with `factor` times the learning rate.
struct RateRule {
  std::string pattern;
  double factor = 1;
};

struct ParamRules {
  std::vector<std::string> freeze;    // keep their values: no gradient, no decay, no state
  std::vector<RateRule> rates;        // of several that match the last counts
  std::vector<std::string> unfreeze;  // train although Cell::frozen has them; `freeze` comes after
};

// The result of the rules for one parameter.
struct ParamRule {
  bool frozen = false;
  double factor = 1;
};

// One for each of Network::params(). Errors: invalid_argument (a pattern that no parameter matches,
// a factor that is not a finite number above 0, nothing left to train).
Result<std::vector<ParamRule>> resolve_rules(const ParamRules& rules, const Network& network);

}  // namespace loom::core
