// System information about the processor: its name, the usable cores, the caches.
// lab/machine_bench.hpp measures its speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loom::core {

// All caches of one level, except instruction caches. `bytes` are of one of them.
struct CacheInfo {
  int level = 0;
  int64_t bytes = 0;
  int count = 0;
};

struct MachineInfo {
  std::string name;  // "unknown processor" if the system does not report it
  int cores = 1;
  std::vector<CacheInfo> caches;  // nearest first; empty if the system does not report them
};

// Linux: from /proc/cpuinfo and /sys. `root`: their parent folder, for tests.
MachineInfo machine_info(const std::string& root = {});

// The total bytes of all caches of the highest level; 0 if there are none.
int64_t last_cache_bytes(const MachineInfo& machine);

}  // namespace loom::core
