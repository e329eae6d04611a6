#include "lab/machine_info.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "io/files/file.hpp"

namespace loom::core {
namespace {

constexpr int kMaxProcessors = 4096, kMaxCaches = 16;

// The first line of a small file; empty if it does not exist.
std::string line_of(const std::string& path) {
  const Result<std::string> text = read_file(path, 1 << 16);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

// The text after "KEY<blanks>: " on the first line that begins with the key.
std::string value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string_view::npos || line[colon] != ':') continue;
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t", colon + 1)));
    return std::string(line.substr(0, line.find_last_not_of(" \t\r") + 1));
  }
  return {};
}

// ARM has numbers instead of a name.
std::string processor_name(const std::string& root) {
  const Result<std::string> text = read_file(root + "/proc/cpuinfo");
  if (!text.ok()) return "unknown processor";
  const std::string name = value_of(*text, "model name");
  if (!name.empty()) return name;
  const std::string maker = value_of(*text, "CPU implementer"), part = value_of(*text, "CPU part");
  if (!part.empty()) return cat("ARM processor, implementer ", maker, ", part ", part);
  return "unknown processor";
}

// "32K", "16M"; 0 for anything else.
int64_t cache_size(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || value <= 0 || value > int64_t{1} << 30) return 0;
  const char unit = end == text.data() + text.size() ? '\0' : *end;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

// Each processor lists a cache that several share.
std::vector<CacheInfo> caches_of(const std::string& root) {
  std::set<std::tuple<int, int64_t, std::string>> seen;
  for (int cpu = 0; cpu < kMaxProcessors; ++cpu) {
    const std::string folder = cat(root, "/sys/devices/system/cpu/cpu", cpu, "/cache/index");
    if (cpu > 0 && !is_directory(cat(folder, 0))) break;
    for (int i = 0; i < kMaxCaches; ++i) {
      const std::string cache = cat(folder, i, "/");
      const std::string type = line_of(cache + "type"), level = line_of(cache + "level");
      if (type.empty()) break;
      if (type == "Instruction" || level.size() != 1 || level[0] < '1' || level[0] > '9') continue;
      const int64_t bytes = cache_size(line_of(cache + "size"));
      if (bytes > 0) seen.emplace(level[0] - '0', bytes, line_of(cache + "shared_cpu_list"));
    }
  }
  std::vector<CacheInfo> caches;
  for (const auto& [level, bytes, sharers] : seen) {
    if (caches.empty() || caches.back().level != level) caches.push_back({level, 0, 0});
    caches.back().bytes = std::max(caches.back().bytes, bytes);
    ++caches.back().count;
  }
  return caches;
}

}  // namespace

MachineInfo machine_info(const std::string& root) {
  return {processor_name(root), ThreadPool::available_cores(), caches_of(root)};
}

int64_t last_cache_bytes(const MachineInfo& machine) {
  if (machine.caches.empty()) return 0;
  return machine.caches.back().bytes * machine.caches.back().count;
}

}  // namespace loom::core
