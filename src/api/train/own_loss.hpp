// Custom losses (Trainer::OwnLoss): their connection to a training step.
#pragma once

#include "grid/network.hpp"
#include "learn/data/dataset.hpp"
#include "learn/spec.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

// Passes the outputs of the valid samples to the caller's loss, and copies its gradients back into
// the step.
Result<double> ask_own_loss(const loom::Trainer::OwnLoss& loss, const loom::Shape& shape,
                            const Tensor& y, const Tensor& dy);
// Adds placeholder targets for a trainer whose caller's loss needs none.
Status add_placeholders(const Network& network, bool labels, Dataset& samples);
// The same for ctc: one label that is not the blank.
Status add_sequences(const LossSpec& loss, Dataset& samples);

}  // namespace loom::core
