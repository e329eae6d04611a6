// The gradient of the prediction of a loss whose targets are drawn from the prediction: the sample
// from which K-FAC and Sophia estimate curvature. Private to the room.
#pragma once

#include "learn/scribe.hpp"
#include "learn/step/step_tensors.hpp"

namespace loom::core {

// Recorded for softmax_ce and mse. For other losses it is dy, the gradient at the real targets.
Result<Tensor> drawn_gradient(Trace& trace, TraceBuilder& s, const TrainStepOptions& options,
                              const StepTensors& t, const Tensor& dy);

}  // namespace loom::core
