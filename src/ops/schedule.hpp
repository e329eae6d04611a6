// The order of commands on a device, where each costs a launch: what can share one stands together.
#pragma once

#include <vector>

#include "ops/ops.hpp"

namespace loom::core {

// Moves commands of a few values behind others of that kind, and derivatives of activations behind
// the product whose result they take, where no command between touches what they touch; then small
// ones that the next large ones do not need, behind those. Results have the same bits.
void schedule(std::vector<Command>& commands);

}  // namespace loom::core
