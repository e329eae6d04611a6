// Which parameters are trained, and how fast: patterns over their paths, as "(0, 0, 0, 0)/weight".
// In a pattern * stands for any characters, also none, and ? for one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grid/network.hpp"
#include "learn/option_structs.hpp"

namespace loom::core {

// The result of the rules for one parameter.
struct ParamRule {
  bool frozen = false;
  double factor = 1;
};

// One for each of Network::params(). Errors: invalid_argument (a pattern that no parameter matches,
// a factor that is not a finite number above 0, nothing left to train).
Result<std::vector<ParamRule>> resolve_rules(const ParamRules& rules, const Network& network);

}  // namespace loom::core
