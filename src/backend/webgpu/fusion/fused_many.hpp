// Fusion for lists of many rows (prompts): several commands as one dispatch. A fused dispatch
// writes all outputs of its commands.
#pragma once

#include <span>

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// The number of commands that were taken from the front of `rest`; 0 means none.
Result<int64_t> fuse_many(Frame& frame, std::span<const Command> rest);

}  // namespace loom::core::webgpu
