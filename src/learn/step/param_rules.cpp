#include "learn/step/param_rules.hpp"

#include <cmath>

#include "base/pattern.hpp"
#include "base/text.hpp"

namespace loom::core {

namespace {

// Calls f(i) for the parameters that match; the Error where there is none.
Status each_match(std::string_view what, const std::string& pattern, const Network& network,
                  const auto& f) {
  bool found = false;
  for (size_t i = 0; i < network.params().size(); ++i) {
    if (!matches_pattern(pattern, network.params()[i].path)) continue;
    found = true;
    f(i);
  }
  if (found) return {};
  const std::string first =
      network.params().empty() ? "no parameters" : cat("for example ", network.params()[0].path);
  return invalid(cat(what, ": no parameter matches '", printable(pattern), "'; there is ", first));
}

// The indices of parameters that can train.
Status check_some_train(const ParamRules& rules, const Network& network,
                        const std::vector<ParamRule>& out) {
  bool any = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!network.params()[i].spec.trained) continue;
    if (!out[i].frozen) return {};
    any = true;
  }
  if (!any) return {};
  return invalid(rules.freeze.empty()
                     ? "the network freezes every parameter; unfreeze some to train it"
                     : "freeze: every parameter is frozen; leave one to train");
}

}  // namespace

Result<std::vector<ParamRule>> resolve_rules(const ParamRules& rules, const Network& network) {
  std::vector<ParamRule> out(network.params().size());
  for (size_t i = 0; i < out.size(); ++i) out[i].frozen = network.params()[i].frozen;
  for (const std::string& pattern : rules.unfreeze) {
    LOOM_TRY(each_match("unfreeze", pattern, network, [&](size_t i) { out[i].frozen = false; }));
  }
  for (const std::string& pattern : rules.freeze) {
    LOOM_TRY(each_match("freeze", pattern, network, [&](size_t i) { out[i].frozen = true; }));
  }
  for (const RateFor& rule : rules.rates) {
    if (!(rule.factor > 0) || !std::isfinite(rule.factor)) {
      return invalid(cat("rate_for '", printable(rule.pattern), "': the factor is ", rule.factor,
                         ", must be above 0; freeze what must not change"));
    }
    LOOM_TRY(each_match("rate_for", rule.pattern, network,
                        [&](size_t i) { out[i].factor = rule.factor; }));
  }
  LOOM_TRY(check_some_train(rules, network, out));
  return out;
}

}  // namespace loom::core
