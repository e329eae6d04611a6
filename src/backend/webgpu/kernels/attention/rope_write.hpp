// rope of queries, rope of keys and kv_write in sequence, as language models have them.
#pragma once

#include "ops/args.hpp"

namespace loom::core::webgpu {

struct RopeWrite {
  const RopeArgs* q = nullptr;
  const RopeArgs* k = nullptr;
  const KvWriteArgs* write = nullptr;
  Tensor kept;  // the rotated keys, if they are read again
};
}  // namespace loom::core::webgpu
