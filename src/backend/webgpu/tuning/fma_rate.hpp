// The multiply-add rate of a device without memory traffic. Kernel rates are reported as shares of
// it.
#pragma once

#include "backend/webgpu/runtime/gpu.hpp"

namespace loom::core::webgpu {

// FLOP per second of fused multiply-adds in f32, counted as two each. The median of seven runs of
// about `seconds` together, on memory of its own. Errors: those of the device.
Result<double> fma_rate(Gpu& gpu, double seconds);

}  // namespace loom::core::webgpu
