// The effective system limit, on trees of /proc and /sys as real machines have them.
#include "io/machine_memory.hpp"

#include <gtest/gtest.h>

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

TEST(MachineMemory, IsTheSmallestLimitOfTheControlGroupsAndThoseAboveThem) {
  const struct {
    const char* groups;
    std::vector<std::pair<std::string, std::string>> files;
    uint64_t limit;  // 0 means no limit by the group
  } rows[] = {
      {"0::/a/b\n", {{"a/b/memory.max", "max\n"}, {"a/memory.max", "1048576\n"}}, 1048576},
      {"0::/\n", {{"memory.max", "2097152\n"}}, 2097152},
      {"0::/a/b\n", {{"a/b/memory.max", "max\n"}}, 0},
      {"0::/gone\n", {}, 0},
      {"4:memory:/c\n3:cpu:/c\n", {{"memory/c/memory.limit_in_bytes", "3145728\n"}}, 3145728},
      {"4:memory:/host/c\n", {{"memory/memory.limit_in_bytes", "4194304\n"}}, 4194304},
      {"4:memory:/\n", {{"memory/memory.limit_in_bytes", "9223372036854771712\n"}}, 0},
      {"no colons", {{"memory.max", "1\n"}}, 0},
  };
  const test::TemporaryFolder empty;
  const uint64_t whole = machine_memory(empty.path("none"));
  EXPECT_GT(whole, uint64_t{1} << 24);
  for (const auto& row : rows) {
    const test::TemporaryFolder folder;
    const auto write = [&](const std::string& name, std::string_view text) {
      std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
      folder.write(name, text);
    };
    write("proc/self/cgroup", row.groups);
    for (const auto& [name, text] : row.files) write("sys/fs/cgroup/" + name, text);
    EXPECT_EQ(machine_memory(folder.path()), row.limit == 0 ? whole : row.limit) << row.groups;
  }
}

}  // namespace
}  // namespace loom::core
