#include "learn/loss/domains.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr double kSumTolerance = 1e-3;  // of shares that were rounded

Error outside(const LossSpec& loss, std::string_view what, const std::string& where,
              std::string_view must, std::string_view remedy) {
  return make_error(Code::out_of_range, cat(where, ": ", what, " must be ", must, " for ",
                                            loss_name(loss.kind), "; ", remedy));
}

// Values of a row that are each in a set, or the Error of the first that is not.
template <class Fits>
Status check_each(const LossSpec& loss, std::span<const float> target, const std::string& where,
                  std::string_view must, std::string_view remedy, Fits fits) {
  const auto bad = std::find_if_not(target.begin(), target.end(), fits);
  if (bad == target.end()) return {};
  return outside(loss, cat("target ", *bad), where, must, remedy);
}

bool is_share(float v) {
  return v >= 0.0f && v <= 1.0f;
}

// A row of probabilities.
Status check_shares(const LossSpec& loss, std::span<const float> target, const std::string& where) {
  constexpr std::string_view kRemedy =
      "give probabilities or class labels, or take mse for other numbers";
  const auto fits = [](float v) {
    return v >= 0.0f && static_cast<double>(v) <= 1 + kSumTolerance;
  };
  LOOM_TRY(check_each(loss, target, where, "from 0 to 1", kRemedy, fits));
  if (loss.kind != LossKind::kl) return {};
  double sum = 0;
  for (const float v : target) sum += static_cast<double>(v);
  if (std::fabs(sum - 1) <= kSumTolerance) return {};
  return outside(loss, cat("the sum ", sum, " of its targets"), where, "1", kRemedy);
}

}  // namespace

Status check_target(const LossSpec& loss, std::span<const float> target, const std::string& where) {
  switch (loss.kind) {
    case LossKind::bce:
    case LossKind::focal:
      return check_each(loss, target, where, "from 0 to 1",
                        "scale the targets, or take mse for other numbers", is_share);
    case LossKind::poisson:
      return check_each(loss, target, where, "0 or more",
                        "give counts, or take mse for other numbers",
                        [](float v) { return v >= 0.0f; });
    case LossKind::hinge:
      return check_each(loss, target, where, "-1, 0 or 1",
                        "give the two sides as -1 and 1 or as 0 and 1, or take mse",
                        [](float v) { return v == -1.0f || v == 0.0f || v == 1.0f; });
    case LossKind::softmax_ce:
    case LossKind::kl: return check_shares(loss, target, where);
    default: return {};
  }
}

}  // namespace loom::core
