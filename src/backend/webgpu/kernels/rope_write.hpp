// rope of queries, rope of keys and kv_write in a row, as a language model has them.
#pragma once

#include "ops/args.hpp"

namespace loom::core::webgpu {

struct RopeWrite {
  const RopeArgs* q = nullptr;
  const RopeArgs* k = nullptr;
  const KvWriteArgs* write = nullptr;
  Tensor kept;  // the keys that are turned, where they are read again
};
}  // namespace loom::core::webgpu
