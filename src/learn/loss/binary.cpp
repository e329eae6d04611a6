// Losses of two sides per value. The op has the formulas (ops/args/training.hpp).
#include "learn/loss/loss.hpp"

namespace loom::core {
namespace {

constexpr TargetDomain kBetween = {.low = 0,
                                   .high = 1,
                                   .must = "from 0 to 1",
                                   .remedy = "scale the targets, or take mse for other numbers"};
constexpr TargetDomain kSides = {.low = -1,
                                 .high = 1,
                                 .integers = true,
                                 .must = "-1, 0 or 1",
                                 .remedy =
                                     "give the two sides as -1 and 1 or as 0 and 1, or take "
                                     "mse"};
constexpr LossOption kFocalOptions[] = {
    {.key = "gamma", .real = &LossSpec::gamma, .run_key = "gamma_focal"},
    {.key = "alpha", .real = &LossSpec::alpha}};

}  // namespace

extern const LossDef kBceLoss, kFocalLoss, kHingeLoss;
const LossDef kBceLoss = {
    .op = LossKind::bce, .prediction = Prediction::binary_logits, .domain = kBetween};
const LossDef kFocalLoss = {.op = LossKind::focal,
                            .prediction = Prediction::binary_logits,
                            .domain = kBetween,
                            .parameter = &LossSpec::gamma,
                            .options = kFocalOptions};
const LossDef kHingeLoss = {
    .op = LossKind::hinge, .prediction = Prediction::margins, .domain = kSides};

}  // namespace loom::core
