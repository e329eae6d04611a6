// What the kernels that update parameters share: the formula, and which moments an optimizer keeps.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

bool uses_m(OptimizerKind kind);
bool uses_v(OptimizerKind kind);

// updated(w, gradient, m, v, rate, c1, c2) -> Updated, and the numbers of `args` that it needs.
Call& optimizer_numbers(Call& call, const OptimizeArgs& args);

}  // namespace loom::core::webgpu
