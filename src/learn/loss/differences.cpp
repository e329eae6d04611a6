// Losses of differences between numbers. The op has the formulas (ops/args/training.hpp).
#include "learn/loss/loss.hpp"

namespace loom::core {
namespace {

constexpr LossOption kQuantileOptions[] = {{.key = "quantile", .real = &LossSpec::quantile}};

}  // namespace

extern const LossDef kMseLoss, kMaeLoss, kHuberLoss, kCosineLoss, kQuantileLoss, kLogCoshLoss;
const LossDef kMseLoss = {.op = LossKind::mse, .likelihood = Likelihood::normal, .degree = 2};
const LossDef kMaeLoss = {.op = LossKind::mae, .degree = 1};
const LossDef kHuberLoss = {.op = LossKind::huber};
// A row of zeros learns nothing.
const LossDef kCosineLoss = {.op = LossKind::cosine};
const LossDef kQuantileLoss = {.op = LossKind::quantile,
                               .degree = 1,
                               .parameter = &LossSpec::quantile,
                               .options = kQuantileOptions};
const LossDef kLogCoshLoss = {.op = LossKind::log_cosh};

}  // namespace loom::core
