#include "convert/packing.hpp"

#include "base/pattern.hpp"

namespace loom::core {
std::optional<DType> ruled(const Param& param, const WriteOptions& options) {
  for (const ConvertRule& rule : options.rules) {
    if (matches_pattern(rule.pattern, param.path)) return rule.dtype;
  }
  return {};
}

PackPolicy policy_of(const WriteOptions& options) {
  PackPolicy policy;
  policy.report = options.report;
  if (options.per_tensor) policy.scope = [](const Param&) { return ScaleScope::per_tensor; };
  return policy;
}

PackPolicy network_policy(const WriteOptions& options) {
  PackPolicy policy = policy_of(options);
  policy.dtype = [&](const Param& param, DType stored) {
    if (const std::optional<DType> dtype = ruled(param, options)) return *dtype;
    return options.dtype.value_or(stored);
  };
  return policy;
}

}  // namespace loom::core
