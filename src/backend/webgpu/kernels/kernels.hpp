// One function per op: describes the dispatches that compute it. Code::unsupported means that there
// is no kernel for these arguments; the backend then runs the command on the CPU and counts it.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu::kernels {

#define LOOM_OP(name, Args) Status name(Frame& frame, const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

// For Call::value(), whose numbers have 32 bits.
inline int64_t low_word(uint64_t v) {
  return static_cast<int64_t>(v & 0xffffffffU);
}
inline int64_t high_word(uint64_t v) {
  return static_cast<int64_t>(v >> 32);
}

}  // namespace loom::core::webgpu::kernels
