// Trial: products run on memory of their own, for the search of variants.hpp. What other frames of
// the device hold is not touched.
#pragma once

#include "backend/webgpu/tuning/variants.hpp"

namespace loom::core::webgpu {

// Errors: out_of_memory, and what the device says.
Result<Run> trial(Gpu& gpu, const Product& product);

}  // namespace loom::core::webgpu
