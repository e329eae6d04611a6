// The memory that this process may use, as the system reports it. Linux: the machine's memory, the
// limits of its control groups (as containers set them), the address space (ulimit -v).
#pragma once

#include <cstdint>
#include <string>

#include "base/memory_budget.hpp"

namespace loom::core {

// Bytes; the smallest of these limits. 0 if the system reports none. `root`: the location of /proc
// and /sys, for tests.
uint64_t machine_memory(const std::string& root = {});

// The default budget of a command: three quarters of machine_memory().
MemoryBudget default_budget();

}  // namespace loom::core
