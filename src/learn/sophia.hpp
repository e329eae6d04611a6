// The curvature that Sophia-G steps by (Liu et al., 2023, "Sophia: A Scalable Stochastic
// Second-order Optimizer"): every so many updates a second backward pass, of targets that are drawn
// from the prediction of the same batch (Gauss-Newton-Bartlett), whose squares estimate the
// diagonal of the Gauss-Newton matrix. Here the estimate is recorded; the step along it is one of
// layerwise.hpp.
//
// With g the gradient of the sum of weight x loss over the rows for drawn targets: h = g^2 / sum of
// weight^2, which of B rows of weight 1 / B is their B g^2; v += (1 - beta2) (h - v). Targets are
// drawn by the counter-based random numbers of the step, so a run that goes on has the same ones.
#pragma once

#include "learn/step_builder.hpp"

namespace loom::core {

// Errors: what the estimate does not go with.
Status check_sophia(const TrainStepOptions& options);

// Forward pass, draw, backward pass, and the move of Trained::v, of all that is not frozen.
Status record_curvature(Trace& trace, const Network& network, const TrainStepOptions& options,
                        const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                        StepTensors& t);

}  // namespace loom::core
