// Lines on a full disk: complete lines before and after it are in the file.
#include "io/files/line_file.hpp"

#include <gtest/gtest.h>

#include "io/file_size_limit.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

TEST(LineFile, GoesOnAfterAFullDiskOnALineOfItsOwn) {
  const test::TemporaryFolder folder;
  auto file = LineFile::open(folder.path("log"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("first\n").ok());
  {
    const test::FileSizeLimit full(9);
    EXPECT_FALSE(file->write("second\n").ok());  // three bytes of it are written
    EXPECT_FALSE(file->write("third\nfourth\n").ok());
    EXPECT_EQ(file->lost(), 3);
  }
  ASSERT_TRUE(file->write("fifth\nsixth\n").ok());
  EXPECT_EQ(file->lost(), 3);
  EXPECT_EQ(*read_file(folder.path("log")), "first\nsec\nfifth\nsixth\n");
}

// The disk is full after any number of bytes: no line is joined to another, and none is counted
// twice.
TEST(LineFile, CountsWhatIsLostAtEveryByte) {
  for (uint64_t room = 0; room < 16; ++room) {
    const test::TemporaryFolder folder;
    auto file = LineFile::open(folder.path("log"));
    {
      const test::FileSizeLimit full(room);
      for (int i = 0; i < 3; ++i) (void)file->write("ab\ncd\n");
    }
    ASSERT_TRUE(file->write("end\n").ok());
    const std::string text = *read_file(folder.path("log"));
    int64_t whole = 0;
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      ASSERT_NE(end, std::string::npos);
      const std::string line = text.substr(at, end - at);
      whole += line == "ab" || line == "cd" ? 1 : 0;
      at = end + 1;
    }
    EXPECT_TRUE(text.ends_with("\nend\n") || text == "end\n") << text;
    EXPECT_EQ(whole + file->lost(), 6) << room << ": " << text;
  }
}

TEST(LineFile, OfAFullDeviceLosesAllAndSaysHowMany) {
  auto file = LineFile::open("/dev/full");
  if (!file.ok()) GTEST_SKIP() << "this system has no /dev/full";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(file->write("line\n").ok());
  EXPECT_EQ(file->lost(), 3);
}

}  // namespace
}  // namespace loom::core
