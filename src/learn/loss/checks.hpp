// Checks of a loss, its options and its targets.
#pragma once

#include <span>
#include <string>

#include "learn/spec.hpp"

namespace loom::core {

// Errors: invalid_argument; options out of range, heads of a loss without classes, or a learning
// rule that the loss does not support.
Status check_loss(const LossSpec& loss, const RuleSpec& rule);

// Checks the targets of one row of a prediction against the domain of the loss.
// Errors: out_of_range; it names `where`, the value, the loss and what to do.
Status check_target(const LossSpec& loss, std::span<const float> target, const std::string& where);

}  // namespace loom::core
