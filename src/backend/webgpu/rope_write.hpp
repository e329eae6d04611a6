// rope of queries, rope of keys and kv_write in a row, as a language model has them.
#pragma once

#include "backend/webgpu/commands.hpp"

namespace loom::core::webgpu {

struct RopeWrite {
  const RopeArgs* q = nullptr;
  const RopeArgs* k = nullptr;
  const KvWriteArgs* write = nullptr;
  Tensor kept;  // the keys that are turned, where they are read again
};
// Whether the first three commands are that: by one table, at one place.
bool take_rope_write(std::span<const Command> rest, RopeWrite& run);

}  // namespace loom::core::webgpu
