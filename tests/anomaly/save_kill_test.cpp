// A process that dies while it saves over a file: killed at every system call, in the middle of
// every write, and at random moments. Afterwards the name has the complete old or new file. Files
// called .NAME.tmp-* may exist next to it until the next save removes them.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "anomaly/faulty_calls.hpp"
#include "anomaly/savers.hpp"
#include "base/text.hpp"
#include "io/io_testing.hpp"

namespace loom::core::test {
namespace {

using test::TemporaryFolder;

class SaveKill : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (int g = 0; g < 3; ++g) {
      ASSERT_TRUE(saver_.save(folder_.path("whole"), g).ok());
      whole_.push_back(*read_file(folder_.path("whole")));
    }
    clean();
  }

  void clean() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      std::filesystem::remove(entry);
  }

  // `child` runs in a separate process; true if it finished.
  template <class Child, class Parent>
  static bool run(Child&& child, Parent&& parent) {
    const pid_t pid = fork();
    if (pid == 0) {
      child();
      _exit(0);
    }
    parent(pid);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
  }

  // The file and, if it is kept, the previous one are complete files of these generations.
  void expect_one_of(const std::string& path, const std::vector<int>& generations) {
    const Result<std::string> now = read_file(path);
    ASSERT_TRUE(now.ok()) << now.error().str();
    bool found = false;
    for (const int g : generations) found = found || *now == whole_[static_cast<size_t>(g)];
    EXPECT_TRUE(found) << path;
    const Status verified = saver_.verify(path);
    EXPECT_TRUE(verified.ok() || path == previous_) << verified.error().str();
  }

  // Other files in the folder have a temporary name of Loom.
  int expect_only_temporaries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path() == path_ || entry.path() == previous_) continue;
      EXPECT_TRUE(entry.path().filename().string().starts_with(".model.tmp-")) << entry.path();
      ++count;
    }
    return count;
  }

  void at_every_call(Fault fault) {
    for (int at = 1; at < 1000; ++at) {
      SCOPED_TRACE(cat(saver_.name, ", call ", at));
      clean();
      ASSERT_TRUE(saver_.save(path_, 0).ok());
      ASSERT_TRUE(saver_.save(path_, 1).ok());
      const bool ended = run(
          [&] {
            const Faults faults({fault, at, 0});
            (void)saver_.save(path_, 2);
          },
          [](pid_t) {});
      expect_one_of(path_, {1, 2});
      if (saver_.keeps) expect_one_of(previous_, {0, 1});
      EXPECT_LE(expect_only_temporaries(), 2);
      // The next save is not disturbed by leftovers, and removes them.
      ASSERT_TRUE(saver_.save(path_, 2).ok());
      expect_one_of(path_, {2});
      EXPECT_EQ(expect_only_temporaries(), 0);
      if (ended) return;
    }
    ADD_FAILURE() << "saving never comes to an end";
  }

  const Saver saver_ = savers()[static_cast<size_t>(GetParam())];
  TemporaryFolder folder_;
  const std::string path_ = folder_.path("model"), previous_ = path_ + ".previous";
  std::vector<std::string> whole_;
};
INSTANTIATE_TEST_SUITE_P(OfEach, SaveKill, ::testing::Range(0, 4),
                         [](const auto& row) { return savers()[row.param].name; });

TEST_P(SaveKill, AtEveryCallLeavesTheOldOrTheNewFile) {
  at_every_call(Fault::death);
}

// LOOM_KILLS: their number; bench/kill_saves.sh uses 1,000.
TEST_P(SaveKill, AtRandomMomentsLeavesTheOldOrTheNewFile) {
  const char* asked = std::getenv("LOOM_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 60;
  std::mt19937 random(1);
  ASSERT_TRUE(saver_.save(path_, 0).ok());
  ASSERT_TRUE(saver_.save(path_, 1).ok());
  int left = 0, saves = 0;
  for (int i = 0; i < kills; ++i) {
    const useconds_t wait = random() % 20'000;
    run(
        [&] {
          for (int g = 0;; ++g) (void)saver_.save(path_, g % 3);
        },
        [&](pid_t pid) {
          usleep(wait);
          kill(pid, SIGKILL);
        });
    expect_one_of(path_, {0, 1, 2});
    if (saver_.keeps) expect_one_of(previous_, {0, 1, 2});
    left += expect_only_temporaries();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path() != path_ && entry.path() != previous_) std::filesystem::remove(entry);
    }
    saves += HasFailure() ? 0 : 1;
    if (HasFailure()) break;
  }
  std::printf("%s: %d kills, %d times the old or the new file, %d temporary files left\n",
              saver_.name, kills, saves, left);
}

}  // namespace
}  // namespace loom::core::test
