// Where scales of packed matrices are: what finds a scale that is NaN or infinite.
#pragma once

#include "dtype/r16.hpp"

namespace loom::core {

// How far apart codes are that together show every scale of a row: where a scale is not finite, no
// decoded value of its block is. 1: codes themselves may be so, as those of float16.
int64_t r16_scale_step(const R16& g);

}  // namespace loom::core
