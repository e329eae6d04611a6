// The effective quota of processor time, on trees of /proc and /sys as real machines have them.
#include "base/threads/control_groups.hpp"

#include <gtest/gtest.h>

#include <random>

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

void write_tree(const test::TemporaryFolder& folder, const Files& files) {
  for (const auto& [name, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
    folder.write(name, text);
  }
}

constexpr const char* kV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* kV1 =
    "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";
constexpr const char* kHybrid =
    "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr const char* kContainer =
    "31 23 0:27 /docker/ab12 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

// Trees of version 1 and 2 as machines have them.
const struct {
  const char* what;
  const char* mounts;
  const char* groups;
  Files files;  // below /sys/fs/cgroup
  int cores;    // 0 means no quota
} kTrees[] = {
    {"a slice of systemd",
     kV2,
     "0::/system.slice/loom.service\n",
     {{"system.slice/loom.service/cpu.max", "150000 100000\n"}},
     2},
    {"an ancestor has less",
     kV2,
     "0::/a.slice/a-b.slice/c.service\n",
     {{"a.slice/cpu.max", "100000 100000\n"},
      {"a.slice/a-b.slice/cpu.max", "max 100000\n"},
      {"a.slice/a-b.slice/c.service/cpu.max", "400000 100000\n"}},
     1},
    {"the group itself has less",
     kV2,
     "0::/a/b\n",
     {{"a/cpu.max", "800000 100000\n"}, {"a/b/cpu.max", "90000 50000\n"}},
     2},
    {"all are max",
     kV2,
     "0::/a/b\n",
     {{"a/cpu.max", "max 100000\n"}, {"a/b/cpu.max", "max 100000\n"}},
     0},
    {"a namespace", kV2, "0::/\n", {{"cpu.max", "300000 100000\n"}}, 3},
    {"a group outside of the namespace",
     kV2,
     "0::/../other\n",
     {{"cpu.max", "300000 100000\n"}},
     3},
    {"no period", kV2, "0::/\n", {{"cpu.max", "200000\n"}}, 2},
    {"less than a core", kV2, "0::/\n", {{"cpu.max", "1000 100000\n"}}, 1},
    {"a very large quota", kV2, "0::/\n", {{"cpu.max", "9223372036854775807 1\n"}}, 1 << 20},
    {"files that say nothing", kV2, "0::/a\n", {{"a/cpu.max", ""}, {"cpu.max", "what\n"}}, 0},
    {"no such group", kV2, "0::/gone\n", {}, 0},
    {"version 1",
     kV1,
     "4:memory:/m\n3:cpu,cpuacct:/a/b\n",
     {{"cpu,cpuacct/a/b/cpu.cfs_quota_us", "250000\n"},
      {"cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"}},
     3},
    {"version 1, an ancestor",
     kV1,
     "3:cpu,cpuacct:/a/b\n",
     {{"cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"},
      {"cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n"},
      {"cpu,cpuacct/a/cpu.cfs_period_us", "50000\n"}},
     2},
    {"version 1 without a quota",
     kV1,
     "3:cpu,cpuacct:/\n",
     {{"cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
     0},
    {"cpuset is another controller",
     kV1,
     "3:cpuset:/a\n",
     {{"cpu,cpuacct/cpu.cfs_quota_us", "100000\n"}},
     0},
    {"both, version 1 has the quota",
     kHybrid,
     "3:cpu,cpuacct:/a\n0::/a\n",
     {{"cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"}, {"unified/a/cgroup.procs", ""}},
     2},
    {"both, version 2 has the quota",
     kHybrid,
     "3:cpu,cpuacct:/\n0::/a/b\n",
     {{"cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}, {"unified/a/cpu.max", "100000 100000\n"}},
     1},
    {"a container of version 1",
     kContainer,
     "3:cpu:/docker/ab12\n",
     {{"cpu/cpu.cfs_quota_us", "200000\n"}},
     2},
    {"a group inside of a container",
     kContainer,
     "3:cpu:/docker/ab12/job\n",
     {{"cpu/cpu.cfs_quota_us", "200000\n"}, {"cpu/job/cpu.cfs_quota_us", "100000\n"}},
     1},
    {"another container with a longer name",
     kContainer,
     "3:cpu:/docker/ab123\n",
     {{"cpu/cpu.cfs_quota_us", "200000\n"}, {"cpu/3/cpu.cfs_quota_us", "100000\n"}},
     2},
    {"no mountinfo, version 2", "", "0::/a\n", {{"a/cpu.max", "100000 100000\n"}}, 1},
    {"no mountinfo, version 1", "", "3:cpu:/a\n", {{"cpu/a/cpu.cfs_quota_us", "100000\n"}}, 1},
    {"no colons", kV2, "no colons", {{"cpu.max", "100000 100000\n"}}, 0},
};

TEST(ControlGroups, TheSmallestQuotaOfAGroupAndItsAncestorsCounts) {
  for (const auto& row : kTrees) {
    const test::TemporaryFolder folder;
    write_tree(folder, {{"proc/self/cgroup", row.groups}, {"proc/self/mountinfo", row.mounts}});
    for (const auto& [name, text] : row.files)
      write_tree(folder, {{"sys/fs/cgroup/" + name, text}});
    EXPECT_EQ(control_group_cores(folder.path()), row.cores) << row.what;
  }
}

TEST(ControlGroups, FilesThatCannotBeReadSetNoLimit) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(control_group_cores(folder.path("none")), 0);
  // A folder in place of the file: also root cannot read it.
  write_tree(folder, {{"proc/self/cgroup", "0::/a/b\n"},
                      {"proc/self/mountinfo", kV2},
                      {"sys/fs/cgroup/a/b/cpu.max/file", "1 1\n"},
                      {"sys/fs/cgroup/a/cpu.max", "200000 100000\n"}});
  EXPECT_EQ(control_group_cores(folder.path()), 2);
}

// Random trees of depth 0 to 5, against the minimum computed from the numbers directly.
TEST(ControlGroups, RandomNestedGroupsGiveTheSmallestQuota) {
  std::mt19937 random(20261128);
  for (int round = 0; round < 60; ++round) {
    const test::TemporaryFolder folder;
    const bool second = random() % 2 == 0;
    const std::string tree = second ? "sys/fs/cgroup" : "sys/fs/cgroup/cpu,cpuacct";
    int expected = 0;
    std::string path;
    for (int depth = static_cast<int>(random() % 6); depth >= 0; --depth) {
      const int cores = static_cast<int>(random() % 9);  // 0 means none
      const std::string micros = std::to_string(cores * 100'000);
      if (cores > 0 && (expected == 0 || cores < expected)) expected = cores;
      if (second) {
        write_tree(folder, {{tree + path + "/cpu.max",
                             cores == 0 ? "max 100000\n" : micros + " 100000\n"}});
      } else {
        write_tree(folder,
                   {{tree + path + "/cpu.cfs_quota_us", cores == 0 ? "-1\n" : micros + "\n"}});
      }
      if (depth > 0) path += "/g" + std::to_string(depth);
    }
    const std::string own = path.empty() ? "/" : path;
    write_tree(folder, {{"proc/self/mountinfo", second ? kV2 : kV1},
                        {"proc/self/cgroup", (second ? "0::" : "3:cpu,cpuacct:") + own + "\n"}});
    EXPECT_EQ(control_group_cores(folder.path()), expected) << round << " " << own;
  }
}

}  // namespace
}  // namespace loom::core
