// See control_groups.hpp. /proc/self/cgroup has a line ID:CONTROLLERS:PATH per hierarchy; version 2
// names no controllers. /proc/self/mountinfo gives the mount point of a hierarchy and its topmost
// visible group: a container sees only the part below its own group.
#ifndef __wasi__  // no process, no groups

#include "base/threads/control_groups.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace loom::core {
namespace {

// One mounted tree. `top`: the group that the mount point shows.
struct Mount {
  std::string top, point;
  int version;
};

std::string read_text(const std::string& path) {
  constexpr size_t kMaxBytes = 1 << 20;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"),
                                                             std::fclose);
  std::string text;
  if (file == nullptr) return text;
  char piece[4096];
  while (text.size() < kMaxBytes) {
    const size_t got = std::fread(piece, 1, sizeof(piece), file.get());
    if (got == 0) break;
    text.append(piece, got);
  }
  return text;
}

// The parts of `text` between separators; empty parts are kept.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool contains(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Lines are "ID PARENT DEVICE TOP POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS".
std::vector<Mount> mounts_of(std::string_view controller, const std::string& root) {
  std::vector<Mount> mounts;
  const std::string text = read_text(root + "/proc/self/mountinfo");
  for (const std::string_view line : split(text, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto range_text = split(line.substr(0, dash), ' ');
    const auto type = split(line.substr(dash + 3), ' ');
    if (range_text.size() < 5 || type.size() < 3) continue;
    const bool second = type[0] == "cgroup2";
    if (!second && (type[0] != "cgroup" || !contains(type[2], controller))) continue;
    mounts.push_back(
        {std::string(range_text[3]), root + std::string(range_text[4]), second ? 2 : 1});
  }
  return mounts;
}

// Where distributions mount the trees; used if mountinfo names none.
std::vector<Mount> usual_mounts(std::string_view controller, const std::string& root) {
  const std::string base = root + "/sys/fs/cgroup";
  return {
      {"/", base, 2}, {"/", base + "/unified", 2}, {"/", base + "/" + std::string(controller), 1}};
}

// The path of a group below a mount that shows `top`; "" if the group is not below it. A path with
// ".." is outside of the namespace of this process, which then sees the mount point alone.
std::string path_below(std::string_view path, std::string_view top) {
  if (path.find("..") != std::string_view::npos) return {};
  if (top != "/") {
    if (!path.starts_with(top)) return {};
    path.remove_prefix(top.size());
    if (!path.empty() && path.front() != '/') return {};
  }
  return path == "/" ? std::string() : std::string(path);
}

void add_with_ancestors(std::vector<ControlGroup>& groups, const Mount& mount, std::string path) {
  while (true) {
    groups.push_back({mount.point + path, mount.version});
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

// The first number of a text, or -1: "max", "-1", nothing.
int64_t number_in(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && value > 0 ? value : -1;
}

// Microseconds of processor time per period. The kernel's default period is 100 ms.
int64_t cores_of(std::string_view quota_text, std::string_view period_text) {
  constexpr int64_t kDefaultPeriod = 100'000, kMaxCores = 1 << 20;
  const int64_t quota = number_in(quota_text);
  if (quota < 0) return 0;
  const int64_t given = number_in(period_text), period = given > 0 ? given : kDefaultPeriod;
  return std::min(quota / period + (quota % period != 0 ? 1 : 0), kMaxCores);
}

int64_t cores_of(const ControlGroup& group) {
  if (group.version == 1) {
    return cores_of(control_group_text(group, "cpu.cfs_quota_us"),
                    control_group_text(group, "cpu.cfs_period_us"));
  }
  const std::string text = control_group_text(group, "cpu.max");
  const auto fields = split(text, ' ');
  return cores_of(fields[0], fields.size() > 1 ? fields[1] : std::string_view());
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  std::vector<Mount> mounts = mounts_of(controller, root);
  if (mounts.empty()) mounts = usual_mounts(controller, root);
  const std::string text = read_text(root + "/proc/self/cgroup");
  for (const std::string_view line : split(text, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const int version = controllers.empty() ? 2 : 1;
    if (version == 1 && !contains(controllers, controller)) continue;
    for (const Mount& mount : mounts) {
      if (mount.version == version)
        add_with_ancestors(groups, mount, path_below(line.substr(second + 1), mount.top));
    }
  }
  return groups;
}

std::string control_group_text(const ControlGroup& group, std::string_view file) {
  return read_text(group.folder + "/" + std::string(file));
}

int control_group_cores(const std::string& root) {
  int64_t least = 0;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const int64_t cores = cores_of(group);
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
  }
  return static_cast<int>(least);
}

}  // namespace loom::core

#endif  // !__wasi__
