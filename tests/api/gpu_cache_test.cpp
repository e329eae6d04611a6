// The cache file of GPU kernel variants: it is read back, shared, and its faults are harmless.
#include "api/engine/gpu_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.hpp"
#include "e2e/temp_folder.hpp"

namespace loom::core::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using webgpu::AdapterReport;
using webgpu::Choice;

AdapterReport adapter(const std::string& name = "A GPU", const std::string& driver = "1.2") {
  AdapterReport report;
  report.name = name;
  report.vendor = "a vendor";
  report.driver = driver;
  report.flavour = "a library";
  return report;
}

const Choice kFirst{"gemm f32 512x512x512", "fast"};
const Choice kSecond{"matmul f32 512x512x512", "faster"};

std::string write_some(const TempFolder& folder, const AdapterReport& report,
                       const std::vector<Choice>& choices) {
  const std::string path = folder.path() + "/cache/loom/gpu.json";
  const Status status = write_gpu_choices(path, report, choices);
  EXPECT_TRUE(status.ok()) << status.error().str();
  return path;
}

TEST(GpuCache, WhatWasWrittenIsReadBack) {
  const TempFolder folder;
  const std::string path = write_some(folder, adapter(), {kFirst, kSecond});
  const GpuChoices got = read_gpu_choices(path, adapter());
  EXPECT_THAT(got.choices, UnorderedElementsAre(kFirst, kSecond));
  EXPECT_EQ(got.note, "");
}

TEST(GpuCache, WhatIsNewJoinsWhatIsThere) {
  const TempFolder folder;
  write_some(folder, adapter(), {kFirst});
  const Choice other{kFirst.product, "fastest"};
  const std::string path = write_some(folder, adapter(), {kSecond, other});
  EXPECT_THAT(read_gpu_choices(path, adapter()).choices, UnorderedElementsAre(kSecond, other));
}

TEST(GpuCache, AdaptersHaveTheirOwn) {
  const TempFolder folder;
  write_some(folder, adapter(), {kFirst});
  const std::string path = write_some(folder, adapter("Another GPU"), {kSecond});
  EXPECT_THAT(read_gpu_choices(path, adapter()).choices, ElementsAre(kFirst));
  EXPECT_THAT(read_gpu_choices(path, adapter("Another GPU")).choices, ElementsAre(kSecond));
  AdapterReport with = adapter();
  for (std::string* part :
       {&with.name, &with.vendor, &with.architecture, &with.driver, &with.backend, &with.flavour}) {
    const std::string before = *part;
    *part += "!";
    const GpuChoices got = read_gpu_choices(path, with);
    EXPECT_THAT(got.choices, IsEmpty()) << *part;
    EXPECT_EQ(got.note, "") << "a new GPU is not a fault of the file";
    *part = before;
  }
}

TEST(GpuCache, AFileThatIsMissingIsNoFault) {
  const GpuChoices got = read_gpu_choices("/nowhere/gpu.json", adapter());
  EXPECT_THAT(got.choices, IsEmpty());
  EXPECT_EQ(got.note, "");
}

TEST(GpuCache, ADamagedFileIsIgnoredAndReplaced) {
  const TempFolder folder;
  const std::string whole = [&] {
    write_some(folder, adapter(), {kFirst});
    return folder.read("cache/loom/gpu.json");
  }();
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string version = cat("\"version\": ", webgpu::variants_version());
  struct Row {
    std::string what, bytes, note;
  };
  const Row rows[] = {
      {"empty", "", ""},
      {"truncated", whole.substr(0, whole.size() / 2), ""},
      {"binary", std::string(64, '\xff'), ""},
      {"of another version", replaced(version, "\"version\": 99"), "another version"},
      {"without a version", replaced("version", "visions"), "not a file of variants"},
      {"with a version that is text", replaced(version, "\"version\": \"1\""),
       "not a file of variants"},
      {"another JSON", "[1, 2]", "not a file of variants"},
      {"no list", "{" + version + ", \"adapters\": 3}", "not a file of variants"},
      {"too large", whole + std::string(2 << 20, ' '), ""},
  };
  for (const Row& row : rows) {
    const std::string path = folder.write("gpu.json", row.bytes);
    const GpuChoices got = read_gpu_choices(path, adapter());
    EXPECT_THAT(got.choices, IsEmpty()) << row.what;
    EXPECT_NE(got.note, "") << row.what;
    EXPECT_THAT(got.note, HasSubstr(row.note)) << row.what;
    ASSERT_TRUE(write_gpu_choices(path, adapter(), {kSecond}).ok()) << row.what;
    EXPECT_THAT(read_gpu_choices(path, adapter()).choices, ElementsAre(kSecond)) << row.what;
  }
}

TEST(GpuCache, ValuesThatAreNoChoicesArePassedOver) {
  const TempFolder folder;
  const std::string path = write_some(folder, adapter(), {kFirst});
  std::string text = folder.read("cache/loom/gpu.json");
  text.replace(text.find("\"choices\": {"), 12,
               "\"choices\": {\"a\": 3, \"b\": null, \"c\": {\"d\": \"e\"}, ");
  folder.write("gpu.json", text);
  EXPECT_THAT(read_gpu_choices(folder.path() + "/gpu.json", adapter()).choices,
              ElementsAre(kFirst));
}

TEST(GpuCache, AFileThatCannotBeWrittenIsAnErrorThatNobodyMeets) {
  const TempFolder folder;
  folder.write("file", "");
  EXPECT_FALSE(write_gpu_choices(folder.path() + "/file/gpu.json", adapter(), {kFirst}).ok());
  EXPECT_EQ(folder.read("file"), "");
}

// Two processes write; this one always reads a complete file.
TEST(GpuCache, ProcessesThatWriteAtOnceLeaveAWholeFile) {
  const TempFolder folder;
  const std::string path = write_some(folder, adapter(), {kFirst});
  pid_t children[2] = {};
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] != 0) continue;
    for (int n = 0; n < 50; ++n) {
      const Choice choice{cat("product ", n), "fast"};
      if (!write_gpu_choices(path, adapter(cat("GPU ", i)), {choice}).ok()) _exit(1);
    }
    _exit(0);
  }
  int left = 2;
  while (left > 0) {
    EXPECT_EQ(read_gpu_choices(path, adapter()).note, "");
    for (pid_t& child : children) {
      int status = 0;
      if (child == 0 || waitpid(child, &status, WNOHANG) != child) continue;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      child = 0;
      --left;
    }
  }
  // The last writer's data is in the file.
  std::vector<Choice> last = read_gpu_choices(path, adapter("GPU 0")).choices;
  const std::vector<Choice> more = read_gpu_choices(path, adapter("GPU 1")).choices;
  last.insert(last.end(), more.begin(), more.end());
  EXPECT_THAT(last, Contains(Choice{"product 49", "fast"}));
}

}  // namespace
}  // namespace loom::core::test
