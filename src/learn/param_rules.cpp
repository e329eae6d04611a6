#include "learn/param_rules.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {

// Where the rest does not match, the last * takes one character more.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

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

}  // namespace

Result<std::vector<ParamRule>> resolve_rules(const ParamRules& rules, const Network& network) {
  std::vector<ParamRule> out(network.params().size());
  for (const std::string& pattern : rules.freeze) {
    LOOM_TRY(each_match("freeze", pattern, network, [&](size_t i) { out[i].frozen = true; }));
  }
  for (const RateRule& rule : rules.rates) {
    if (!(rule.factor > 0) || !std::isfinite(rule.factor)) {
      return invalid(cat("rate_for '", printable(rule.pattern), "': the factor is ", rule.factor,
                         ", must be above 0; freeze what must not change"));
    }
    LOOM_TRY(each_match("rate_for", rule.pattern, network,
                        [&](size_t i) { out[i].factor = rule.factor; }));
  }
  const bool all = !rules.freeze.empty() &&
                   std::all_of(out.begin(), out.end(), [](const ParamRule& r) { return r.frozen; });
  if (all) return invalid("freeze: every parameter is frozen; leave one to train");
  return out;
}

}  // namespace loom::core
