// What the kernels that update parameters share: the formula.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

// updated(w, gradient, m, v, rate, c1, c2, c3) -> Updated, and the numbers of `args` that it needs.
Call& optimizer_numbers(Call& call, const OptimizeArgs& args);

}  // namespace loom::core::webgpu
