#include "convert/packing.hpp"

namespace loom::core {
namespace {

// Does `text` fit `pattern`, where * stands for any text? Linear in the product of their lengths.
bool fits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

std::optional<DType> ruled(const Param& param, const ConvertOptions& options) {
  for (const ConvertRule& rule : options.rules) {
    if (fits(rule.pattern, param.path)) return rule.dtype;
  }
  return {};
}

PackPolicy policy_of(const ConvertOptions& options) {
  PackPolicy policy;
  policy.report = options.report;
  policy.adjust = options.adjust;
  if (options.per_tensor) policy.scope = [](const Param&) { return ScaleScope::per_tensor; };
  return policy;
}

PackPolicy network_policy(const ConvertOptions& options) {
  PackPolicy policy = policy_of(options);
  policy.dtype = [&](const Param& param, DType stored) {
    if (const std::optional<DType> dtype = ruled(param, options)) return *dtype;
    return options.dtype.value_or(stored);
  };
  return policy;
}

}  // namespace loom::core
