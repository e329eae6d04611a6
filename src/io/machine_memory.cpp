// See machine_memory.hpp. A control group's own limit may be "max" while an ancestor has a number,
// so all ancestors are read (base/threads/control_groups.hpp).
#include "io/machine_memory.hpp"

#ifndef __wasi__
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <charconv>

#include "base/threads/control_groups.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

#ifndef __wasi__

uint64_t number_in(const std::string& text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && value > 0 ? value : kUnknown;
}

uint64_t group_limit(const std::string& root) {
  uint64_t least = kUnknown;
  for (const ControlGroup& group : control_groups("memory", root)) {
    const char* file = group.version == 2 ? "memory.max" : "memory.limit_in_bytes";
    least = std::min(least, number_in(control_group_text(group, file)));
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
