// Initial values of parameters: a pure function of the seed, the location of the parameter in the
// network, and its rule (layers/core/layer.hpp, Init). They are the same on every machine.
#pragma once

#include "grid/network.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// Values [first, first + count) of parameter `index`, row-major.
void init_values(const Network& network, int index, uint64_t seed, int64_t first, int64_t count,
                 float* out);
// Fills every parameter that is not loaded yet, matrices in `dtype`.
Status init_params(Network& network, DType dtype, uint64_t seed, ThreadPool& pool);

}  // namespace loom::core
