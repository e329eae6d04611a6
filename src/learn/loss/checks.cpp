#include "learn/loss/checks.hpp"

#include <cmath>

#include "base/text.hpp"
#include "learn/loss/loss.hpp"
#include "learn/rules/rule.hpp"

namespace loom::core {
namespace {

Error outside(const LossSpec& loss, std::string_view what, const std::string& where,
              std::string_view must) {
  return make_error(Code::out_of_range,
                    cat(where, ": ", what, " must be ", must, " for ", loss_name(loss.kind), "; ",
                        loss_def(loss.kind).domain.remedy));
}

bool is_in(const TargetDomain& domain, double value) {
  const bool whole = !domain.integers || value == std::nearbyint(value);
  return value >= domain.low && value <= domain.high && whole;
}

// Options of pairs and other recorded losses, whose gradient starts at the loss.
Status check_recorded(const LossSpec& loss, const RuleSpec& rule) {
  const std::string_view name = loss_name(loss.kind);
  if (!loss.heads.empty()) return invalid(cat("several heads are for softmax_ce, not for ", name));
  if (rule.stats)
    return invalid(cat("signals of layers are not measured with ", name, "; leave them out"));
  if (rule_def(rule.kind).end_to_end) return {};
  return invalid(
      cat("the rule ", rule_name(rule.kind), " does not go with ", name, ", ",
          loss.pairs() ? "whose rows have no targets of their own" : "which is recorded from ops",
          "; use back-propagation"));
}

}  // namespace

Status check_loss(const LossSpec& loss, const RuleSpec& rule) {
  const LossDef& def = loss_def(loss.kind);
  for (const LossOption& option : def.options) {
    if (option.positive && !(loss.*option.real > 0))
      return invalid(cat("the ", option.key, " of ", loss_name(loss.kind), " is ",
                         loss.*option.real, ", must be above 0"));
  }
  return def.record != nullptr ? check_recorded(loss, rule) : Status{};
}

Status check_target(const LossSpec& loss, std::span<const float> target, const std::string& where) {
  const TargetDomain& domain = loss_def(loss.kind).domain;
  if (domain.must == nullptr) return {};
  double sum = 0;
  for (const float v : target) {
    if (!is_in(domain, static_cast<double>(v)))
      return outside(loss, cat("target ", v), where, domain.must);
    sum += static_cast<double>(v);
  }
  if (!domain.sums_to_one || std::fabs(sum - 1) <= kSumTolerance) return {};
  return outside(loss, cat("the sum ", sum, " of its targets"), where, "1");
}

}  // namespace loom::core
