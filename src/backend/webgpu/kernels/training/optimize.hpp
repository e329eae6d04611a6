// The formula that all kernels share that update parameters.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

// updated(w, gradient, m, v, rate, c1, c2, c3) -> Updated, and the values of `args` that it uses.
Call& optimizer_numbers(Call& call, const OptimizeArgs& args);

}  // namespace loom::core::webgpu
