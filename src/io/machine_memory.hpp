// How much memory this process may have, by what the system says. Linux: the machine's, the limits
// of its control groups (as containers set them), the address space (ulimit -v).
#pragma once

#include <cstdint>
#include <string>

#include "base/memory_budget.hpp"

namespace loom::core {

// Bytes; the smallest of the limits above. 0 where the system does not say. `root`: where /proc and
// /sys are found, for tests.
uint64_t machine_memory(const std::string& root = {});

// The budget of a command whose user named none: three quarters of machine_memory().
MemoryBudget default_budget();

}  // namespace loom::core
