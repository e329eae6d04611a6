// Augment as text: random changes of training samples, new in every epoch (docs/training.md).
#pragma once

#include <string>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/training_options.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// "flip,crop:2,rotate:10,mixup:0.2"; a name without a number has its usual one. Errors:
// invalid_argument.
LOOM_API Result<Augment> parse_augment(std::string_view text);
// The reverse; empty if there are no changes.
LOOM_API std::string augment_text(const Augment& augment);

}  // namespace loom
#endif
