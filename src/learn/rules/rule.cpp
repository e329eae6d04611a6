#include "learn/rules/rule.hpp"

#include "base/text.hpp"

namespace loom::core {

bool RuleSpec::has_beta() const {
  for (const RuleOption& option : rule_def(kind).options) {
    if (option.real == &RuleSpec::beta) return true;
  }
  return false;
}

float RuleSpec::min_budget() const {
  return gate.value_or(rule_def(kind).gate);
}

std::string rules_with(bool (RuleDef::*fact)() const) {
  std::vector<std::string> names;
  for (uint8_t i = 0; rule_name(static_cast<Rule>(i)) != "unknown"; ++i) {
    const auto rule = static_cast<Rule>(i);
    const RuleDef& def = rule_def(rule);
    if (!def.end_to_end && (def.*fact)()) names.emplace_back(rule_name(rule));
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : cat(join(names, ", "), " and ", last);
}

}  // namespace loom::core
