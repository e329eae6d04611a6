// The control groups of this process (Linux), as containers and systemd set them. A limit applies
// to a group and all groups below it, so the smallest limit of a group and its ancestors is used.
// Supports versions 1 and 2, and hosts that mount both. Unreadable files set no limit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loom::core {

// One folder of a control group, and the version of its file names.
struct ControlGroup {
  std::string folder;
  int version = 2;
};

// The groups whose files can limit `controller` ("cpu", "memory"): each group of this process, then
// its ancestors up to the mount point. `root` is the folder that has /proc and /sys, for tests.
// Empty if the system has no control groups.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = {});

// The text of a small file of a group, or "" if it cannot be read.
std::string control_group_text(const ControlGroup& group, std::string_view file);

// The CPU quota in cores, rounded up: the smallest of all groups. 0 means that there is no quota.
int control_group_cores(const std::string& root = {});

}  // namespace loom::core
