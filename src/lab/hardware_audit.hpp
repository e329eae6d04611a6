// System information besides the processor: memory, temperatures, clocks, power. It reads files of
// the system, starts no program, and reports no address of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loom::core {

struct ThermalZone {
  std::string name;  // "x86_pkg_temp"
  double celsius = 0;
};
struct PowerSource {
  std::string name, status;  // "BAT0", "Discharging"; empty for an energy meter
  double share = -1;         // charge, from 0 to 1; -1 means unknown
  double joules = -1;        // energy counted so far; -1 means unknown
};

// Unknown values are 0 or empty.
struct HardwareAudit {
  std::string system, release;
  double uptime_seconds = 0;
  int64_t memory_total = 0, memory_available = 0;  // bytes
  int64_t resident = 0, resident_peak = 0;         // of this process
  int64_t cache_line = 0;                          // bytes
  double mhz = 0, mhz_most = 0;                    // of the first processor
  std::string governor;                            // "performance"
  std::vector<ThermalZone> thermal;
  std::vector<PowerSource> power;
};

// Linux: from /proc and /sys. `root`: their parent folder, for tests.
HardwareAudit audit_hardware(const std::string& root = {});

}  // namespace loom::core
