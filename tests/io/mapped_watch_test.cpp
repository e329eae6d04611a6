// Files that change under a map: truncated, overwritten in place, replaced.
#include "io/files/mapped_watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "io/files/file.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

const std::string kOld(20'000, 'a'), kNew(20'000, 'b');

TEST(MappedWatch, NamesAFileThatIsCutOrOverwrittenWhileItIsMapped) {
  for (const std::string& now : {kNew, std::string(), kNew + kNew}) {
    const test::TemporaryFolder folder;
    folder.write("m", kOld);
    std::filesystem::last_write_time(folder.path("m"), std::filesystem::file_time_type{});
    {
      const auto map = MappedFile::open(folder.path("m"));
      ASSERT_TRUE(map.ok());
      EXPECT_EQ(changed_mapped_file(), "");
      folder.write("m", now);  // in place
      EXPECT_EQ(changed_mapped_file(), folder.path("m"));
    }
    EXPECT_EQ(changed_mapped_file(), "");
  }
}

TEST(MappedWatch, NamesAFileThatChangesWhileItIsBeingMapped) {
  const test::TemporaryFolder folder;
  folder.write("m", kOld);
  std::filesystem::last_write_time(folder.path("m"), std::filesystem::file_time_type{});
  const int fd = ::open(folder.path("m").c_str(), O_RDONLY);
  const std::optional<FileState> before = state_of(fd);
  ASSERT_TRUE(before);
  folder.write("m", kNew);
  {
    const auto watch = watch_map(folder.path("m"), fd, *before, kOld.data(), kOld.size());
    EXPECT_EQ(changed_mapped_file(), folder.path("m"));
  }
  ::close(fd);
}

TEST(MappedWatch, AFileThatIsReplacedOrRemovedIsNotChanged) {
  const test::TemporaryFolder folder;
  folder.write("m", kOld);
  Result<MappedFile> map = MappedFile::open(folder.path("m"));
  ASSERT_TRUE(map.ok());
  ASSERT_TRUE(write_file_atomic(folder.path("m"), test::bytes_of(kNew)).ok());
  EXPECT_EQ(changed_mapped_file(), "");
  std::filesystem::remove(folder.path("m"));
  EXPECT_EQ(changed_mapped_file(), "");
  EXPECT_EQ(static_cast<char>(map->bytes()[19'999]), 'a');
  const MappedFile moved = std::move(*map);  // is still watched
  EXPECT_EQ(moved.bytes().size(), kOld.size());
}

// Runs in a process of its own: the guard stays for the life of the process.
template <class Work>
int status_of_child(Work&& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST(MappedWatch, AGuardedProcessReadsZerosOfAFileThatWasCut) {
  const test::TemporaryFolder folder;
  folder.write("m", kOld);
  const auto read_cut = [&](bool guard) {
    signal(SIGBUS, SIG_DFL);  // AddressSanitizer has a handler of its own
    if (guard) guard_mapped_files();
    const auto map = MappedFile::open(folder.path("m"));
    if (!map.ok() || truncate(folder.path("m").c_str(), 0) != 0) return false;
    int sum = 0;
    for (const std::byte byte : map->bytes()) sum += static_cast<int>(byte);
    return sum == 0 && changed_mapped_file() == folder.path("m");
  };
  EXPECT_EQ(status_of_child([&] { return read_cut(true); }), 0);
  folder.write("m", kOld);
  const int status = status_of_child([&] { return read_cut(false); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

TEST(MappedWatch, OtherBusErrorsGoToTheHandlerBefore) {
  const int status = status_of_child([] {
    signal(SIGBUS, [](int) { _exit(7); });
    guard_mapped_files();
    raise(SIGBUS);
    return false;
  });
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace loom::core
