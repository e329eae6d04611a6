// The reference backend: every op written literally from docs/numerics.md, scalar and slow. It is
// the oracle: other backends start as a copy of this table and must keep its bits (CPU) or its
// bound (device).
#pragma once

#include "ops/ops.hpp"

namespace loom {

const Ops& reference_ops();

}  // namespace loom
