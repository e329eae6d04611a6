// A process that dies or fails while it replaces a folder of several files: killed at every system
// call, in the middle of every write, and with every call failing. Afterwards the name has the
// complete old or new folder. If the system cannot exchange folders, it may be missing between two
// renames.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "anomaly/faulty_calls.hpp"
#include "base/text.hpp"
#include "io/files/atomic_folder.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;

// Generations have other contents, and one of two has a file more.
Contents generation(int g) {
  Contents files = {{"model.safetensors", std::string(3000, static_cast<char>('a' + g))},
                    {"tokenizer.json", cat("tokenizer ", g)},
                    {"config.json", cat("config ", g)}};
  if (g % 2 == 0) files["chat_template.jinja"] = cat("template ", g);
  return files;
}

bool is_replaced(std::string_view name) {
  return name != "README.md" && name != "link";
}

Status save(const std::string& path, int g) {
  LOOM_ASSIGN(AtomicFolder folder, AtomicFolder::create(path, is_replaced));
  for (const auto& [name, text] : generation(g)) {
    const Status done =
        write_file_atomic(cat(folder.temporary(), "/", name), std::as_bytes(std::span(text)));
    if (!done.ok()) return folder.renamed(done.error());
  }
  return folder.commit();
}

Contents contents_of(const std::string& path) {
  Contents files;
  for (const auto& entry : fs::directory_iterator(path))
    files[entry.path().filename().string()] = *read_file(entry.path().string());
  return files;
}

class FolderKill : public ::testing::TestWithParam<bool> {
 protected:
  FolderKill() { fail_every(Call::exchange, can_exchange_ ? 0 : ENOSYS); }
  ~FolderKill() override { fail_every(Call::exchange, 0); }

  // Generation 1, with a file of the user's and a link.
  void start() {
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    ASSERT_TRUE(save(path_, 1).ok());
    folder_.write("m/README.md", "mine");
    fs::create_symlink("README.md", path_ + "/link");
  }
  static Contents with_mine(int g) {
    Contents files = generation(g);
    files["README.md"] = files["link"] = "mine";
    return files;
  }
  bool is_generation(int g) const { return contents_of(path_) == with_mine(g); }
  // Names next to the folder. All are Loom's.
  int left_beside() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name == "m") continue;
      EXPECT_TRUE(name.starts_with(".m.tmp-") || name.starts_with(".m.old-")) << name;
      ++count;
    }
    return count;
  }

  // A separate process that dies at call `at`; true if it finished.
  bool save_and_die(int at) const {
    const pid_t pid = fork();
    if (pid == 0) {
      const Faults faults({Fault::death, at, 0});
      _exit(save(path_, 2).ok() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
  }

  const bool can_exchange_ = GetParam();
  TemporaryFolder folder_;
  const std::string path_ = folder_.path("m");
};
INSTANTIATE_TEST_SUITE_P(Of, FolderKill, ::testing::Bool(), [](const auto& row) {
  return std::string(row.param ? "Exchange" : "TwoRenames");
});

TEST_P(FolderKill, AtEveryCallLeavesTheOldOrTheNewFolder) {
  int missing = 0;
  for (int at = 1; at < 1000; ++at) {
    SCOPED_TRACE(at);
    start();
    const bool ended = save_and_die(at);
    if (!fs::exists(path_)) {
      ++missing;
      EXPECT_FALSE(can_exchange_);
    } else {
      EXPECT_TRUE(is_generation(1) || is_generation(2));
    }
    EXPECT_LE(left_beside(), 2);
    // The next save finds the user's files again, and removes leftovers.
    const Status next = save(path_, 3);
    ASSERT_TRUE(next.ok()) << next.error().str();
    EXPECT_TRUE(is_generation(3));
    EXPECT_EQ(left_beside(), 0);
    if (!ended) continue;
    EXPECT_LE(missing, 1);
    return;
  }
  ADD_FAILURE() << "saving never comes to an end";
}

// A folder that did not exist appears complete, or not at all.
TEST_P(FolderKill, AtEveryCallLeavesNothingOrTheFirstFolder) {
  for (int at = 1; at < 1000; ++at) {
    SCOPED_TRACE(at);
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    const bool ended = save_and_die(at);
    if (fs::exists(path_)) {
      EXPECT_EQ(contents_of(path_), generation(2));
    }
    if (ended) return;
  }
  ADD_FAILURE() << "saving never comes to an end";
}

TEST_P(FolderKill, ACallThatFailsLeavesTheOldOrTheNewFolder) {
  for (const Fault fault : {Fault::error, Fault::errors, Fault::short_write}) {
    for (int at = 1; at < 1000; ++at) {
      start();
      bool happened = false;
      const Status saved = [&] {
        const Faults faults({fault, at, ENOSPC});
        Status done = save(path_, 2);
        happened = faults.happened();
        return done;
      }();
      SCOPED_TRACE(cat(at, ": ", saved.ok() ? "saved" : saved.error().str()));
      // Every rename fails from the second one on: the message says where the old folder is.
      if (!saved.ok() && !fs::exists(path_)) {
        EXPECT_TRUE(!can_exchange_ && fault == Fault::errors);
        EXPECT_NE(saved.error().str().find("; the old folder is "), std::string::npos);
        continue;
      }
      EXPECT_TRUE(is_generation(2) || (!saved.ok() && is_generation(1)));
      EXPECT_EQ(left_beside(), 0);
      const std::string message = saved.ok() ? "" : saved.error().str();
      EXPECT_EQ(message.find(".m.tmp-"), std::string::npos);
      if (!happened) break;
      ASSERT_LT(at, 999) << "saving never comes to an end";
    }
  }
}

TEST_P(FolderKill, ADiskThatIsFullAfterAKillBringsTheOldFolderBack) {
  for (int at = 1; at < 1000; ++at) {
    start();
    const bool ended = save_and_die(at);
    fail_every(Call::write, ENOSPC);
    const Faults faults({});
    EXPECT_FALSE(save(path_, 3).ok());
    fail_every(Call::write, 0);
    EXPECT_TRUE(is_generation(1) || is_generation(2)) << at;
    if (ended) return;
  }
}

TEST(AtomicFolder, RefusesWhatWouldBeLost) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  ASSERT_TRUE(save(path, 1).ok());
  fs::create_directories(path + "/onnx");
  const Status inside = save(path, 2);
  ASSERT_FALSE(inside.ok());
  EXPECT_EQ(inside.error().code, Code::invalid_argument);
  EXPECT_EQ(inside.error().str(),
            path +
                ": it has 'onnx' inside, which is not a file of a model and would be lost; give "
                "another name, or move that away");
  fs::remove(path + "/onnx");
  EXPECT_EQ(contents_of(path), generation(1));

  const fs::path before = fs::current_path();
  fs::current_path(path);
  const Status here = save(".", 2);
  fs::current_path(before);
  ASSERT_FALSE(here.ok());
  EXPECT_NE(here.error().str().find("this is the current folder"), std::string::npos);

  folder.write("file", "text");
  EXPECT_EQ(save(folder.path("file"), 1).error().code, Code::invalid_argument);
  EXPECT_EQ(save(folder.path("none/m"), 1).error().code, Code::not_found);
  EXPECT_EQ(save("", 1).error().code, Code::invalid_argument);
  EXPECT_NE(save("/proc", 1).error().str().find("mount point"), std::string::npos);
}

TEST(AtomicFolder, FollowsALinkAndKeepsPermissions) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path("real"), 1).ok());
  ASSERT_EQ(chmod(folder.path("real").c_str(), 0750), 0);
  fs::create_directory_symlink("real", folder.path("link"));
  ASSERT_TRUE(save(folder.path("link/"), 2).ok());
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(contents_of(folder.path("real")), generation(2));
  struct stat info = {};
  ASSERT_EQ(stat(folder.path("real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0750u);
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(AtomicFolder, OfAnotherProcessThatWritesStays) {
  const TemporaryFolder folder;
  auto other = AtomicFolder::create(folder.path("m"), is_replaced);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(save(folder.path("m"), 2).ok());
  EXPECT_TRUE(fs::exists(other->temporary()));
  EXPECT_EQ(contents_of(folder.path("m")), generation(2));
}

}  // namespace
}  // namespace loom::core::test
