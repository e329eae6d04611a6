// What this process holds in memory, by what the system says (Linux: /proc/self/status).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace loom::core {

// Bytes; 0: not said.
struct ResidentMemory {
  int64_t now = 0;   // falls when memory is given back
  int64_t peak = 0;  // of `now` since the process began
};
// `root`: where /proc is found, for tests.
ResidentMemory resident_memory(const std::string& root = {});

// "MemTotal:       16315284 kB" among the lines of such a file, as bytes; 0: not among them.
int64_t kilobytes_of(std::string_view text, std::string_view key);

}  // namespace loom::core
