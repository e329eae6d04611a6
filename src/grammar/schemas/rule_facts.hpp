// Facts of the expressions of a grammar: which may be empty, which match any text at all, and
// whether a rule begins with itself.
#pragma once

#include <vector>

#include "grammar/builder.hpp"

namespace loom::core::grammar {

struct RuleFacts {
  std::vector<bool> may_be_empty, has_text;  // of each expression
};

// Errors: invalid_argument (a rule that is undefined, begins with itself, or is nested too deep),
// naming the rule.
Result<RuleFacts> rule_facts(const Builder& builder);

}  // namespace loom::core::grammar
