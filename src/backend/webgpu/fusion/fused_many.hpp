// Fusion for lists of many rows (prompts): several commands as one dispatch. A fused dispatch
// writes all that its commands write.
#pragma once

#include <span>

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// How many commands at the front of `rest` were taken; 0: none.
Result<int64_t> fuse_many(Frame& frame, std::span<const Command> rest);

}  // namespace loom::core::webgpu
