// See machine_memory.hpp. A control group's own limit may be "max" while one above it has a number,
// so all of them are asked, up to the root. Version 1 has a tree of its own for memory.
#include "io/machine_memory.hpp"

#ifndef __wasi__
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <charconv>
#include <string_view>

#include "io/file.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

#ifndef __wasi__

uint64_t number_in(const std::string& path) {
  const Result<std::string> text = read_file(path, 4096);
  uint64_t value = 0;
  if (!text.ok()) return kUnknown;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  return code == std::errc() && value > 0 ? value : kUnknown;
}

// The smallest number in files called `name` of the group `path` under `tree` and those above it.
uint64_t smallest_above(const std::string& tree, std::string path, std::string_view name) {
  uint64_t least = kUnknown;
  for (;;) {
    least = std::min(least, number_in(tree + path + "/" + std::string(name)));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

uint64_t group_limit(const std::string& root) {
  const std::string tree = root + "/sys/fs/cgroup";
  uint64_t least = kUnknown;
  const Result<std::string> groups = read_file(root + "/proc/self/cgroup", 1 << 16);
  if (!groups.ok()) return least;
  // Lines of ID:CONTROLLERS:PATH; version 2 names no controllers.
  for (std::string_view rest = *groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) least = std::min(least, smallest_above(tree, path, "memory.max"));
    if (controllers == "memory") {
      least = std::min(least, smallest_above(tree + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

#endif

}  // namespace

uint64_t machine_memory([[maybe_unused]] const std::string& root) {
  uint64_t least = kUnknown;
#ifndef __wasi__
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) least = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    least = std::min<uint64_t>(least, limit.rlim_cur);
  least = std::min(least, group_limit(root));
#endif
  return least == kUnknown ? 0 : least;
}

MemoryBudget default_budget() {
  const uint64_t memory = machine_memory();
  return MemoryBudget(memory == 0 ? uint64_t{1} << 31 : memory / 4 * 3, false);
}

}  // namespace loom::core
