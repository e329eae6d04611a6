// The resident memory of this process, as the system reports it (Linux: /proc/self/status).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace loom::core {

// Bytes; 0 means not reported.
struct ResidentMemory {
  int64_t now = 0;   // falls when memory is returned
  int64_t peak = 0;  // maximum of `now` since the start of the process
};
// `root`: the location of /proc, for tests.
ResidentMemory resident_memory(const std::string& root = {});

// The value in bytes of a line such as "MemTotal:       16315284 kB"; 0 if there is no such line.
int64_t kilobytes_of(std::string_view text, std::string_view key);

}  // namespace loom::core
