// matmul with at most sixteen outputs per row and a long sum, such as the last layer of a
// classifier. Tiles and the kernels for few rows would have too few workgroups.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

bool is_narrow(const MatmulArgs& args);
// loss: a loss whose gradient by the product is computed in the same dispatch; may be null.
Status matmul_narrow(Frame& frame, const MatmulArgs& args, const LossArgs* loss = nullptr);

}  // namespace loom::core::webgpu
