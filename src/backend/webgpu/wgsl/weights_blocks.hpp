// The decode snippets of types with codes in two planes, zeros of blocks or super-blocks.
// weights.hpp describes the kernel's view of them.
#pragma once

#include <string>

#include "dtype/dtype.hpp"

namespace loom::core::webgpu {

bool in_blocks(const DTypeInfo& info);
// Needs w_base(), w_words() and byte_values().
std::string block_text(const DTypeInfo& info);

}  // namespace loom::core::webgpu
