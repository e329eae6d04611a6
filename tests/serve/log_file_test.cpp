// The log of requests on a disk that is full for a while.
#include "serve/log_file.hpp"

#include <gtest/gtest.h>

#include "io/file_size_limit.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

TEST(RequestLog, IsWrittenAgainAfterAFullDiskAndSaysWhatIsMissing) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("log");
  std::vector<std::string> notes;
  {
    auto log = log_to_file(path, [&](const std::string& text) { notes.push_back(text); });
    ASSERT_TRUE(log.ok());
    (*log)("{\"a\":1}");
    {
      const test::FileSizeLimit full(8);
      (*log)("{\"a\":2}");
      (*log)("{\"a\":3}");
    }
    (*log)("{\"a\":4}");
    (*log)("{\"a\":5}");
  }
  EXPECT_EQ(*read_file(path), "{\"a\":1}\n{\"lost_lines\":2}\n{\"a\":4}\n{\"a\":5}\n");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], path +
                          ": cannot write: File too large; lines of the log are lost until it "
                          "can be written");
  EXPECT_EQ(notes[1], path + ": the log is written again; 2 lines are lost");
}

TEST(RequestLog, ThatStaysFullSaysAtItsEndHowManyLinesAreLost) {
  std::vector<std::string> notes;
  {
    auto log = log_to_file("/dev/full", [&](const std::string& text) { notes.push_back(text); });
    if (!log.ok()) GTEST_SKIP() << "this system has no /dev/full";
    for (int i = 0; i < 4; ++i) (*log)("{}");
  }
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1], "/dev/full: 4 lines of the log are lost");
}

TEST(RequestLog, IsRefusedWhereItCannotBeWritten) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(log_to_file(folder.path(), {}).ok());
  EXPECT_FALSE(log_to_file(folder.path("none/log"), {}).ok());
}

}  // namespace
}  // namespace loom::core
