#include "lab/hardware_audit.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.hpp"
#include "io/files/file.hpp"
#include "io/process_memory.hpp"

namespace loom::core {
namespace {

constexpr int kMaxSources = 256;

std::string small_file(const std::string& path) {
  const Result<std::string> text = read_file(path, 1 << 16);
  if (!text.ok()) return {};
  return text->substr(0, text->find('\n'));
}

double number_in(std::string_view text, double otherwise) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? value : otherwise;
}

std::vector<ThermalZone> thermal_zones(const std::string& root) {
  std::vector<ThermalZone> out;
  for (int i = 0; i < kMaxSources; ++i) {
    const std::string zone = cat(root, "/sys/class/thermal/thermal_zone", i, "/");
    const std::string name = small_file(zone + "type");
    if (name.empty()) break;
    const std::string temperature = small_file(zone + "temp");
    if (!temperature.empty()) out.push_back({name, number_in(temperature, 0) / 1000});
  }
  return out;
}

std::vector<PowerSource> power_sources(const std::string& root) {
  std::vector<PowerSource> out;
  for (const char* name : {"BAT0", "BAT1", "AC", "ACAD"}) {
    const std::string folder = cat(root, "/sys/class/power_supply/", name, "/");
    const std::string charge = small_file(folder + "capacity");
    const std::string status = small_file(folder + "status");
    const std::string online = small_file(folder + "online");
    if (charge.empty() && online.empty()) continue;
    out.push_back({name,
                   !status.empty() ? status
                   : online == "1" ? "Online"
                                   : "Offline",
                   charge.empty() ? -1 : number_in(charge, -100) / 100, -1});
  }
  for (int i = 0; i < kMaxSources; ++i) {
    const std::string meter = cat(root, "/sys/class/powercap/intel-rapl:", i, "/");
    const std::string name = small_file(meter + "name");
    if (name.empty()) break;
    const std::string energy = small_file(meter + "energy_uj");
    out.push_back({name, "", -1, energy.empty() ? -1 : number_in(energy, -1e6) / 1e6});
  }
  return out;
}

}  // namespace

HardwareAudit audit_hardware(const std::string& root) {
  HardwareAudit out;
  out.system = small_file(root + "/proc/sys/kernel/ostype");
  out.release = small_file(root + "/proc/sys/kernel/osrelease");
  out.uptime_seconds = number_in(small_file(root + "/proc/uptime"), 0);
  const Result<std::string> memory = read_file(root + "/proc/meminfo", 1 << 16);
  if (memory.ok()) {
    out.memory_total = kilobytes_of(*memory, "MemTotal");
    out.memory_available = kilobytes_of(*memory, "MemAvailable");
  }
  const ResidentMemory process = resident_memory(root);
  out.resident = process.now;
  out.resident_peak = process.peak;
  const std::string cpu = root + "/sys/devices/system/cpu/cpu0/";
  out.cache_line =
      static_cast<int64_t>(number_in(small_file(cpu + "cache/index0/coherency_line_size"), 0));
  out.mhz = number_in(small_file(cpu + "cpufreq/scaling_cur_freq"), 0) / 1000;
  out.mhz_most = number_in(small_file(cpu + "cpufreq/cpuinfo_max_freq"), 0) / 1000;
  out.governor = small_file(cpu + "cpufreq/scaling_governor");
  out.thermal = thermal_zones(root);
  out.power = power_sources(root);
  return out;
}

}  // namespace loom::core
