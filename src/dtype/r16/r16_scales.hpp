// The locations of scales in packed matrices, to find a scale that is NaN or infinite.
#pragma once

#include "dtype/r16/r16.hpp"

namespace loom::core {

// The stride of codes that together cover every scale of a row: if a scale is not finite, no
// decoded value of its block is. 1 means that codes themselves may be non-finite, as in float16.
int64_t r16_scale_step(const R16& g);

}  // namespace loom::core
