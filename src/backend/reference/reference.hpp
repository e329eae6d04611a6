// The reference backend: every op written literally from docs/numerics.md, scalar and slow. It is
// the oracle. Other backends start as a copy of this table and must keep its bits (CPU) or its
// bound (device).
#pragma once

#include "ops/families/fwd.hpp"

namespace loom::core {

const Ops& reference_ops();
// The same bodies with every activation, plain parameter and sum in f64: the oracle of gradients.
// Quantized activations and the KV cache are left out; they are f32 by definition.
const Ops& reference_ops_f64();

}  // namespace loom::core
