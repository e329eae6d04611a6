// Counts: the prediction is the logarithm of their mean. The op has the formula
// (ops/args/training.hpp).
#include "learn/loss/loss.hpp"

namespace loom::core {

extern const LossDef kPoissonLoss;
const LossDef kPoissonLoss = {
    .op = LossKind::poisson,
    .domain = {
        .low = 0, .must = "0 or more", .remedy = "give counts, or take mse for other numbers"}};

}  // namespace loom::core
