// A child process (fork) has no thread that writes records. A write there fails at once.
#include <gtest/gtest.h>

#include "telemetry/queue.hpp"

#if LOOM_THREADS && defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>

namespace loom::core::test {
namespace {

TEST(RecordQueue, OfAForkedProcessFailsAtOnceAndItsParentWritesAll) {
  int written = 0;
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(line_sink([&](std::string_view) {
    ++written;
    return Status();
  }));
  RecordQueue queue(std::move(sinks), 10);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);  // ends a child that hangs
    queue.push({});
    // Longer than the alarm: a close that waits is seen.
    const Status closed = queue.close(std::chrono::hours(1));
    _exit(!closed.ok() && closed.error().code == Code::invalid_argument && written == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  queue.push({});
  EXPECT_TRUE(queue.close(std::chrono::hours(1)).ok());
  EXPECT_EQ(written, 1);
}

}  // namespace
}  // namespace loom::core::test

#endif
