// How fast a device multiplies and adds, with nothing to read: what rates of kernels are shares of.
#pragma once

#include "backend/webgpu/runtime/gpu.hpp"

namespace loom::core::webgpu {

// FLOP per second of fused multiply-adds in f32, two each: the median of seven runs of about
// `seconds` together. On memory of its own. Errors: what the device says.
Result<double> fma_rate(Gpu& gpu, double seconds);

}  // namespace loom::core::webgpu
