// What the system says of the processor: its name, the cores this process may use, the caches. What
// it reaches is measured (lab/machine_bench.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loom::core {

// All caches of one level, instruction caches left out. `bytes` are of one of them.
struct CacheInfo {
  int level = 0;
  int64_t bytes = 0;
  int count = 0;
};

struct MachineInfo {
  std::string name;  // "unknown processor" where the system does not say
  int cores = 1;
  std::vector<CacheInfo> caches;  // nearest first; empty where the system does not say
};

// Linux: from /proc/cpuinfo and /sys. `root`: where these are found, for tests.
MachineInfo machine_info(const std::string& root = {});

// The bytes of all caches of the highest level together; 0 where there are none.
int64_t last_cache_bytes(const MachineInfo& machine);

}  // namespace loom::core
