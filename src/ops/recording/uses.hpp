// The memory that commands touch. It determines which may be reordered, and which may run
// concurrently.
#pragma once

#include <span>
#include <vector>

#include "ops/ops.hpp"

namespace loom::core {

struct Use {
  const std::byte* begin;
  const std::byte* end;
  bool write;
};

// Adds the memory of a command: its tensors, q8 copies and caches.
void add_uses(const Command& command, std::vector<Use>& uses);
// Whether neither list writes memory that the other touches.
bool apart(std::span<const Use> a, std::span<const Use> b);

}  // namespace loom::core
