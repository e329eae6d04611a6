// Saving over a file while one system call after the other fails: afterwards the name has the
// complete old or new file, and no other file is next to it. Calls that are interrupted or write
// less than requested change nothing.
#include <cerrno>

#include "anomaly/faulty_calls.hpp"
#include "anomaly/savers.hpp"
#include "base/text.hpp"
#include "io/io_testing.hpp"

namespace loom::core::test {
namespace {

using test::TemporaryFolder;

class SaveFaults : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    // The contents of each generation, saved without faults.
    for (int g = 0; g < 3; ++g) {
      const std::string name = "whole" + std::to_string(g);
      ASSERT_TRUE(saver_.save(folder_.path(name), g).ok());
      whole_.push_back(*read_file(folder_.path(name)));
      std::filesystem::remove(folder_.path(name));
    }
    ASSERT_NE(whole_[1], whole_[2]);
  }

  // Generation 1 at its name and, if the saver keeps it, 0 under the other.
  void start() {
    std::filesystem::remove(path_);
    ASSERT_TRUE(saver_.save(path_, 0).ok());
    ASSERT_TRUE(saver_.save(path_, 1).ok());
    ASSERT_EQ(*read_file(path_), whole_[1]);
    if (!saver_.keeps) return;
    ASSERT_EQ(*read_file(previous_), whole_[0]);
  }

  // Saves generation 2 under the plan.
  Status save(const FaultPlan& plan, bool& happened) {
    const Faults faults(plan);
    Status saved = saver_.save(path_, 2);
    happened = faults.happened();
    return saved;
  }

  void expect_old_or_new(const Status& saved) {
    const Result<std::string> now = read_file(path_);
    ASSERT_TRUE(now.ok()) << now.error().str();
    EXPECT_TRUE(*now == whole_[2] || (!saved.ok() && *now == whole_[1]));
    const Status verified = saver_.verify(path_);
    EXPECT_TRUE(verified.ok()) << verified.error().str();
    EXPECT_EQ(folder_.file_count(), saver_.keeps ? 2u : 1u) << "an extra file is left";
    if (!saver_.keeps) return;
    const Result<std::string> before = read_file(previous_);
    ASSERT_TRUE(before.ok()) << before.error().str();
    EXPECT_TRUE(*before == whole_[1] || (!saved.ok() && *before == whole_[0]));
  }

  // Runs with the fault at call 1, 2, ... until no call is left to fail; returns how many there
  // are.
  int for_every_call(Fault fault, int error_number, bool succeeds) {
    for (int at = 1; at < 1000; ++at) {
      start();
      bool happened = false;
      const Status saved = save({fault, at, error_number}, happened);
      SCOPED_TRACE(
          cat(saver_.name, ", call ", at, ": ", saved.ok() ? "saved" : saved.error().str()));
      expect_old_or_new(saved);
      if (HasFatalFailure()) return at;
      if (!happened) return at - 1;
      EXPECT_TRUE(saved.ok() || !succeeds);
      EXPECT_TRUE(saved.ok() || saved.error().str().find('\n') == std::string::npos);
    }
    ADD_FAILURE() << "saving never comes to an end";
    return 1000;
  }

  const Saver saver_ = savers()[static_cast<size_t>(GetParam())];
  TemporaryFolder folder_;
  const std::string path_ = folder_.path(
                        "m\xC3\xB6"
                        "del"),
                    previous_ = path_ + ".previous";
  std::vector<std::string> whole_;
};
INSTANTIATE_TEST_SUITE_P(OfEach, SaveFaults, ::testing::Range(0, 4),
                         [](const auto& row) { return savers()[row.param].name; });

TEST_P(SaveFaults, OneCallThatFailsLeavesTheOldOrTheNewFile) {
  const int calls = for_every_call(Fault::error, ENOSPC, false);
  EXPECT_GE(calls, 8) << "create, permissions, write, sync, close, rename, sync of the folder";
  EXPECT_EQ(for_every_call(Fault::error, EIO, false), calls);
}

TEST_P(SaveFaults, ADiskThatStaysFullLeavesTheOldOrTheNewFile) {
  for_every_call(Fault::errors, ENOSPC, false);
  for_every_call(Fault::errors, EIO, false);
}

TEST_P(SaveFaults, ShortWritesChangeNothing) {
  for_every_call(Fault::short_write, 0, true);
}

TEST_P(SaveFaults, AFullDiskKeepsTheOldFile) {
  start();
  fail_every(Call::write, ENOSPC);
  bool happened = false;
  for (int again = 0; again < 3; ++again) {
    const Status saved = save({}, happened);
    EXPECT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().code, Code::io_error);
    EXPECT_EQ(saved.error().str(), path_ + ": cannot write: No space left on device");
  }
  fail_every(Call::write, 0);
  EXPECT_EQ(*read_file(path_), whole_[1]);
  EXPECT_TRUE(!saver_.keeps || *read_file(previous_) == whole_[0]);
}

TEST_P(SaveFaults, AFileSystemWithoutHardLinksIsFine) {
  start();
  fail_every(Call::link, EPERM);
  bool happened = false;
  const Status saved = save({}, happened);
  fail_every(Call::link, 0);
  EXPECT_TRUE(saved.ok());
  expect_old_or_new(saved);
}

TEST_P(SaveFaults, AFileSystemThatCannotSyncFoldersIsFine) {
  start();
  bool happened = false;
  int last = 0;
  {
    const Faults faults({});
    ASSERT_TRUE(saver_.save(path_, 1).ok());
    last = faults.calls();
  }
  start();
  const Status saved = save({Fault::error, last - 1, EINVAL}, happened);  // before its close
  EXPECT_TRUE(saved.ok()) << saved.error().str();
  expect_old_or_new(saved);
}

// rename and link are not interrupted by POSIX.
TEST_P(SaveFaults, InterruptedCallsAreRepeated) {
  int interrupted = 0;
  for (int at = 1; at < 1000; ++at) {
    start();
    bool happened = false;
    const Status saved = save({Fault::error, at, EINTR}, happened);
    SCOPED_TRACE(cat(saver_.name, ", call ", at));
    expect_old_or_new(saved);
    if (!happened) break;
    interrupted += saved.ok() ? 1 : 0;
    const bool atomic = !saved.ok() && (saved.error().message.starts_with("cannot replace") ||
                                        saved.error().message.starts_with("cannot keep"));
    EXPECT_TRUE(saved.ok() || atomic) << saved.error().str();
  }
  EXPECT_GE(interrupted, 6);
}

}  // namespace
}  // namespace loom::core::test
