#include "learn/spec.hpp"

#include "base/names.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kLosses[] = {
    "mse",      "mae",     "huber",    "softmax_ce", "bce", "kl",      "cosine",      "focal",
    "quantile", "poisson", "log_cosh", "hinge",      "ctc", "triplet", "contrastive", "infonce"};

}  // namespace

Result<LossKind> parse_loss(std::string_view name) {
  if (to_lower_ascii(name) == "cross_entropy") return LossKind::softmax_ce;
  return value_named<LossKind>("loss", kLosses, name);
}
std::string_view loss_name(LossKind kind) {
  return kLosses[static_cast<size_t>(kind)];
}

float LossSpec::number() const {
  if (kind == LossKind::focal) return gamma;
  return kind == LossKind::quantile ? quantile : delta;
}

bool LossSpec::sequence() const {
  return kind == kCtcLoss;
}

bool LossSpec::pairs() const {
  return kind == kTripletLoss || kind == kContrastiveLoss || kind == kInfoNceLoss;
}

bool LossSpec::sides() const {
  return kind == LossKind::bce || kind == LossKind::focal || kind == LossKind::hinge;
}

}  // namespace loom::core
