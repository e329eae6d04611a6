// Trial: products run on memory of their own, for the search of variants.hpp. State of other frames
// of the device is not touched.
#pragma once

#include "backend/webgpu/tuning/variants.hpp"

namespace loom::core::webgpu {

// Errors: out_of_memory, and those of the device.
Result<Run> trial(Gpu& gpu, const Product& product);

}  // namespace loom::core::webgpu
