// Losses of the caller (Trainer::OwnLoss): what stands between them and a step.
#pragma once

#include "grid/network.hpp"
#include "learn/dataset.hpp"
#include "learn/spec.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

// The outputs of the samples that there are as a tensor of the caller, and what it makes of them
// back into those of the step.
Result<double> ask_own_loss(const loom::Trainer::OwnLoss& loss, const loom::Shape& shape,
                            const Tensor& y, const Tensor& dy);
// Targets that a trainer is made with where the caller's loss needs none.
Status add_placeholders(const Network& network, bool labels, Dataset& samples);
// The same of ctc: one label that is not the blank.
Status add_sequences(const LossSpec& loss, Dataset& samples);

}  // namespace loom::core
