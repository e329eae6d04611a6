// Losses of distributions over classes. The op has the formulas (ops/args/training.hpp).
#include "learn/loss/loss.hpp"

namespace loom::core {
namespace {

constexpr TargetDomain kProbabilities = {
    .low = 0,
    .high = 1 + kSumTolerance,
    .must = "from 0 to 1",
    .remedy = "give probabilities or class labels, or take mse for other numbers"};

constexpr TargetDomain of_one_distribution() {
  TargetDomain domain = kProbabilities;
  domain.sums_to_one = true;
  return domain;
}

}  // namespace

extern const LossDef kCrossEntropyLoss, kKlLoss;
// The sum of targets may be any, as PyTorch documents it.
const LossDef kCrossEntropyLoss = {.op = LossKind::softmax_ce,
                                   .prediction = Prediction::classes,
                                   .domain = kProbabilities,
                                   .likelihood = Likelihood::categorical};
const LossDef kKlLoss = {.op = LossKind::kl, .domain = of_one_distribution()};

}  // namespace loom::core
