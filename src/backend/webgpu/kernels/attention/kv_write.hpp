// kv_write into caches of narrow types, of which several positions share a word.
#pragma once

#include "backend/webgpu/kernels/attention/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Error: unsupported if reads_cache() is false.
Status known_cache(std::string_view op, const KvCache& cache);

// Writes rows in their order or at positions of their own. turned: includes the preceding rope
// commands, with queries and keys at the cache's positions.
Status kv_write_shared(Frame& frame, const KvWriteArgs& args, const RopeWrite* rope = nullptr);

}  // namespace loom::core::webgpu
