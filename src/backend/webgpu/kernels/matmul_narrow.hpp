// matmul with at most sixteen outputs per row and a long sum, such as the last layer of a
// classifier: neither tiles nor the kernels for few rows would have enough workgroups.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

bool is_narrow(const MatmulArgs& args);
// loss: its gradient by what the product makes, which is made with it; null: nothing.
Status matmul_narrow(Frame& frame, const MatmulArgs& args, const LossArgs* loss = nullptr);

}  // namespace loom::core::webgpu
