// The order of commands on a device, where each costs a launch: commands that can share one are
// adjacent.
#pragma once

#include <vector>

#include "ops/ops.hpp"

namespace loom::core {

// Reorders commands without changing the bits of results. Commands of a few values move after
// others of that kind. Derivatives of activations move after the product whose result they take, if
// no command between touches the same memory. Then small commands move after the next large ones
// that do not need them.
void schedule(std::vector<Command>& commands);

}  // namespace loom::core
