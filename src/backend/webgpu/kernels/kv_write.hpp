// kv_write into caches of narrow types, of which several positions share a word.
#pragma once

#include "backend/webgpu/kernels/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// unsupported where reads_cache() says no.
Status known_cache(std::string_view op, const KvCache& cache);

// Rows in their order or at places of their own. turned: what comes before is done here too, with
// queries and keys at the positions that the cache has them at.
Status kv_write_shared(Frame& frame, const KvWriteArgs& args, const RopeWrite* turned = nullptr);

}  // namespace loom::core::webgpu
