// Files: reading whole, mapping, atomic writing, and their refusals.
#include "io/files/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TemporaryFolder;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ReadFile, GivesTheWholeFile) {
  const TemporaryFolder folder;
  std::string large(100'000, 'x');
  large[70'000] = '\0';
  for (const std::string& text : {std::string(), std::string("abc"), large}) {
    folder.write("a", text);
    const auto read = read_file(folder.path("a"));
    ASSERT_TRUE(read.ok()) << read.error().str();
    EXPECT_EQ(*read, text);
  }
}

TEST(ReadFile, ReadsFilesWhoseSizeIsUnknown) {
  const auto read = read_file("/proc/self/status");
  if (!read.ok()) GTEST_SKIP() << "no /proc here";
  EXPECT_NE(read->find("Name:"), std::string::npos);
}

TEST(ReadFile, RefusesWhatIsTooLargeOrNoFile) {
  const TemporaryFolder folder;
  folder.write("a", "12345");
  EXPECT_EQ(*read_file(folder.path("a"), 5), "12345");
  EXPECT_EQ(*read_file(folder.path("a"), UINT64_MAX), "12345");
  expect_error(read_file(folder.path("a"), 4), Code::bad_file,
               folder.path("a") + ": larger than the limit of 4 bytes");
  expect_error(read_file(folder.path("a"), 0), Code::bad_file,
               folder.path("a") + ": larger than the limit of 0 bytes");
  expect_error(read_file(folder.path("b")), Code::not_found,
               folder.path("b") + ": cannot open: No such file or directory");
  expect_error(read_file(folder.path("a/b")), Code::not_found,
               folder.path("a/b") + ": cannot open: Not a directory");
  expect_error(read_file(folder.path()), Code::bad_file,
               folder.path() + ": this is a folder, not a file");
  expect_error(read_file(folder.path(std::string(300, 'n'))), Code::not_found,
               folder.path(std::string(300, 'n')) + ": cannot open: File name too long");
  expect_error(read_file(std::string("a\0b", 3)), Code::invalid_argument, "a path with a NUL byte");
}

TEST(ReadFile, DoesNotWaitForTheWriterOfAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  expect_error(read_file(folder.path("pipe")), Code::bad_file,
               folder.path("pipe") + ": this is a device or a pipe, not a file");
  EXPECT_FALSE(MappedFile::open(folder.path("pipe")).ok());
}

TEST(Paths, TellFilesFromFolders) {
  const TemporaryFolder folder;
  folder.write("a", "");
  EXPECT_TRUE(file_exists(folder.path("a")));
  EXPECT_TRUE(file_exists(folder.path()));
  EXPECT_FALSE(file_exists(folder.path("b")));
  EXPECT_TRUE(is_directory(folder.path()));
  EXPECT_FALSE(is_directory(folder.path("a")));
  EXPECT_FALSE(is_directory(folder.path("b")));
}

TEST(MappedFile, ShowsTheBytesAndSurvivesMoves) {
  const TemporaryFolder folder;
  folder.write("a", "hello");
  auto opened = MappedFile::open(folder.path("a"));
  ASSERT_TRUE(opened.ok()) << opened.error().str();
  MappedFile map = std::move(opened).value();
  const std::byte* address = map.bytes().data();
  MappedFile moved = std::move(map);
  MappedFile assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.bytes().data(), address);
  EXPECT_EQ(text_of(assigned.bytes()), "hello");
  EXPECT_EQ(assigned.path(), folder.path("a"));
}

TEST(MappedFile, MapsAnEmptyFileToNothing) {
  const TemporaryFolder folder;
  folder.write("a", "");
  const auto map = MappedFile::open(folder.path("a"));
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map->bytes().empty());
  map->release(0, 0);
}

TEST(MappedFile, RefusesWhatCannotBeMapped) {
  const TemporaryFolder folder;
  expect_error(MappedFile::open(folder.path("b")), Code::not_found,
               folder.path("b") + ": cannot open: No such file or directory");
  expect_error(MappedFile::open(folder.path()), Code::bad_file,
               folder.path() + ": this is a folder, not a file");
}

TEST(MappedFile, ReadsReleasedPagesAgain) {
  const TemporaryFolder folder;
  std::string text(3 * 65536 + 7, 'y');
  text.back() = 'z';
  folder.write("a", text);
  const auto map = MappedFile::open(folder.path("a"));
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(text_of(map->bytes()), text);
  for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{0, text.size()},
                                     {1, 10},
                                     {100, 131072},
                                     {text.size(), 0},
                                     {text.size() + 1, 0},
                                     {5, UINT64_MAX}}) {
    map->release(offset, size);
  }
  EXPECT_EQ(text_of(map->bytes()), text);
}

TEST(WriteFileAtomic, WritesReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  for (const std::string text : {"first", "", "second, longer"}) {
    const Status written = write_file_atomic(folder.path("a"), bytes_of(text));
    ASSERT_TRUE(written.ok()) << written.error().str();
    EXPECT_EQ(*read_file(folder.path("a")), text);
    EXPECT_EQ(folder.file_count(), 1u);
  }
}

TEST(WriteFileAtomic, WritesAPlainNameInTheWorkingFolder) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Status written = write_file_atomic("plain", bytes_of("x"));
  std::filesystem::current_path(before);
  ASSERT_TRUE(written.ok()) << written.error().str();
  EXPECT_EQ(*read_file(folder.path("plain")), "x");
}

TEST(WriteFileAtomic, KeepsAMapOfTheOldFileIntact) {
  const TemporaryFolder folder;
  folder.write("a", "old content");
  const auto map = MappedFile::open(folder.path("a"));
  ASSERT_TRUE(map.ok());
  ASSERT_TRUE(write_file_atomic(folder.path("a"), bytes_of("new")).ok());
  EXPECT_EQ(text_of(map->bytes()), "old content");
  EXPECT_EQ(*read_file(folder.path("a")), "new");
}

TEST(WriteFileAtomic, KeepsThePermissionsOfTheFileItReplaces) {
  const TemporaryFolder folder;
  folder.write("a", "old");
  ASSERT_EQ(chmod(folder.path("a").c_str(), 0640), 0);
  ASSERT_TRUE(write_file_atomic(folder.path("a"), bytes_of("new")).ok());
  struct stat info = {};
  ASSERT_EQ(stat(folder.path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(WriteFileAtomic, WritesUnderANameOfFullLength) {
  const TemporaryFolder folder;
  const std::string path = folder.path(std::string(255, 'n'));
  const Status written = write_file_atomic(path, bytes_of("x"));
  ASSERT_TRUE(written.ok()) << written.error().str();
  EXPECT_EQ(*read_file(path), "x");
}

TEST(WriteFileAtomic, LeavesTheOldFileAndNoTemporaryOnErrors) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("taken/inside"));
  for (const std::string& taken : {folder.path("taken"), folder.path("taken/"), folder.path("no/")})
    expect_error(write_file_atomic(taken, bytes_of("x")), Code::invalid_argument,
                 taken + ": this is a folder; give the name of a file");
  EXPECT_EQ(folder.file_count(), 1u);
  expect_error(write_file_atomic(folder.path("no/such/folder"), bytes_of("x")), Code::not_found,
               folder.path("no/such/folder") + ": the folder for it does not exist; make it first");
  expect_error(write_file_atomic("", bytes_of("x")), Code::invalid_argument, "not a path");
}

TEST(WriteFileAtomic, ReplacesALinkInsteadOfFollowingIt) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.path("link"));
  ASSERT_TRUE(write_file_atomic(folder.path("link"), bytes_of("x")).ok());
  EXPECT_EQ(*read_file(folder.path("link")), "x");
}

// A rename over /dev/null would remove it for all users.
TEST(WriteFileAtomic, NeverReplacesADeviceOrAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  expect_error(write_file_atomic(folder.path("pipe"), bytes_of("x")), Code::invalid_argument,
               folder.path("pipe") + ": this is a device or a pipe; give the name of a file");
  expect_error(write_file_atomic("/dev/null", bytes_of("x")), Code::invalid_argument,
               "/dev/null: this is a device or a pipe; give the name of a file");
}

// The number of a process that has ended.
std::string dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return std::to_string(child);
}

TEST(WriteFileAtomic, RemovesWhatDeadProcessesLeftAndNothingElse) {
  const std::string dead = dead_process(), alive = std::to_string(getpid());
  struct Row {
    std::string name;
    bool removed;
  };
  const Row rows[] = {
      {".a.tmp-" + dead + "-123456-0", true},
      {".a.tmp-" + dead + "-9-17", true},
      {".a.tmp-" + alive + "-123456-0", false},
      {".a.tmp-1-123456-0", false},
      {".a.tmp-notes", false},
      {".a.tmp-" + dead + "-1-0.bak", false},
      {".a.tmp-" + dead + "-1", false},
      {".a.tmp--1-2", false},
      {".b.tmp-" + dead + "-1-0", false},
      {"a.tmp-" + dead + "-1-0", false},
      {".a.tmp-" + dead + "-1-99999999999999999999", false},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) folder.write(row.name, "left");
  std::filesystem::create_directory(folder.path(".a.tmp-" + dead + "-5-5"));
  std::filesystem::create_symlink(folder.path(".a.tmp-notes"),
                                  folder.path(".a.tmp-" + dead + "-6-6"));
  // A process holds it whose number means nothing here: in another container, for example.
  const std::string held = folder.path(".a.tmp-" + dead + "-7-7");
  folder.write(".a.tmp-" + dead + "-7-7", "being written");
  const int fd = ::open(held.c_str(), O_WRONLY);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  ASSERT_TRUE(write_file_atomic(folder.path("a"), bytes_of("x")).ok());
  for (const Row& row : rows)
    EXPECT_EQ(file_exists(folder.path(row.name)), !row.removed) << row.name;
  EXPECT_TRUE(is_directory(folder.path(".a.tmp-" + dead + "-5-5")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path(".a.tmp-" + dead + "-6-6")));
  EXPECT_TRUE(file_exists(held));
  close(fd);
  ASSERT_TRUE(write_file_atomic(folder.path("a"), bytes_of("x")).ok());
  EXPECT_FALSE(file_exists(held));
}

TEST(WriteFileAtomic, LeavesAFileThatIsBeingWritten) {
  const TemporaryFolder folder;
  Result<AtomicFile> first = AtomicFile::create(folder.path("a"));
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->write("first").ok());
  ASSERT_TRUE(write_file_atomic(folder.path("a"), bytes_of("second")).ok());
  EXPECT_EQ(*read_file(folder.path("a")), "second");
  ASSERT_TRUE(first->commit().ok());
  EXPECT_EQ(*read_file(folder.path("a")), "first");
  EXPECT_EQ(folder.file_count(), 1u);
}

// Sets one limit of the process for its lifetime.
class Limit {
 public:
  Limit(decltype(RLIMIT_FSIZE) what, rlim_t value) : what_(what) {
    getrlimit(what_, &old_);
    const rlimit limit = {value, old_.rlim_max};
    setrlimit(what_, &limit);
  }
  ~Limit() { setrlimit(what_, &old_); }

 private:
  decltype(RLIMIT_FSIZE) what_;
  rlimit old_ = {};
};

TEST(WriteFileAtomic, LeavesTheOldFileWhenTheDiskIsFull) {
  // A limit on file sizes fails a write halfway, like a full disk.
  const TemporaryFolder folder;
  folder.write("a", "old");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  Status written;
  {
    const Limit limit(RLIMIT_FSIZE, 4096);
    written = write_file_atomic(folder.path("a"), bytes_of(std::string(10'000, 'x')));
  }
  std::signal(SIGXFSZ, handler);
  expect_error(written, Code::io_error, folder.path("a") + ": cannot write: File too large");
  EXPECT_EQ(*read_file(folder.path("a")), "old");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Files, ReportThatNoMoreCanBeOpened) {
  const TemporaryFolder folder;
  folder.write("a", "old");
  const Limit limit(RLIMIT_NOFILE, 0);
  expect_error(read_file(folder.path("a")), Code::io_error,
               folder.path("a") + ": cannot open: Too many open files");
  expect_error(MappedFile::open(folder.path("a")), Code::io_error,
               folder.path("a") + ": cannot open: Too many open files");
  expect_error(write_file_atomic(folder.path("a"), bytes_of("x")), Code::io_error,
               folder.path("a") + ": cannot create it: Too many open files");
}

}  // namespace
}  // namespace loom::core
