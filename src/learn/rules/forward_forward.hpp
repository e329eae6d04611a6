// Forward-Forward (Hinton, 2022). Every block but the last learns to separate inputs with their
// label from inputs with a wrong one. It uses two more forward passes, and no backward pass through
// other blocks. The label is a fixed random pattern P[label] added to the input (one per class, as
// superimposed labels of Scodellaro and others, 2023). With G the mean of squares of a sample's
// output at a cut, theta the threshold, w the weight of the row:
//   loss of a block   w (softplus(theta - G(right)) + softplus(G(wrong) - theta))
//   wrong label       drawn for each sample from the prediction without the right label, anew in
//                     each step
// The last block is a linear readout: it learns from the gradient of the loss on inputs without a
// pattern, which stops at the last cut. That is also how the network predicts. Goodness of a layer
// must not be read off the length of its input: put a norm in front of every layer but the first.
// Private to the room.
#pragma once

#include "learn/rules/signals.hpp"

namespace loom::core {

// The result of RuleDef::contrast: outputs at the cuts in both passes, and the gradients of their
// losses.
struct Contrast {
  std::vector<Tensor> outputs, gradients;
  // Gives them to `d`, and stops the gradient of the loss at every cut of the pass in `t`.
  Status hand_to(Differentiator& d, const StepTensors& t) const;
};

}  // namespace loom::core
