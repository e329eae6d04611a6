// Which targets a loss is defined for.
#pragma once

#include <span>
#include <string>

#include "learn/spec.hpp"

namespace loom::core {

// Checks the targets of one row of a prediction:
//   bce, focal               each from 0 to 1
//   poisson                  each 0 or more
//   hinge                    each -1, 0 or 1
//   softmax_ce               each from 0 to 1, as PyTorch documents it
//   kl                       each from 0 to 1, with sum 1
//   others                   any finite number; of cosine, a row of zeros learns nothing
// Errors: out_of_range; it names `where`, the value, the loss and what to do.
Status check_target(const LossSpec& loss, std::span<const float> target, const std::string& where);

}  // namespace loom::core
