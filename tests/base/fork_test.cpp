// Child processes of a process that used pools: they compute with all lanes, or end.
#include <gtest/gtest.h>

#if LOOM_THREADS && defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/threads/fork_watch.hpp"
#include "base/threads/thread_pool.hpp"

// ThreadSanitizer knows threads by their numbers, and those of a child begin again: it ends such a
// child.
#if defined(__SANITIZE_THREAD__)
#define LOOM_NEEDS_THREADS_AFTER_FORK() \
  GTEST_SKIP() << "ThreadSanitizer supports no threads in a child of a process with threads"
#else
#define LOOM_NEEDS_THREADS_AFTER_FORK() static_cast<void>(0)
#endif

namespace loom::core {
namespace {

// Runs `work` in a child; the system ends a child that hangs. True if it returned true.
template <class Work>
bool in_child(Work&& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Every lane counts once per region, between two barriers.
bool computes(ThreadPool& pool, int lanes) {
  std::atomic<int> calls{0};
  for (int region = 0; region < 20; ++region) {
    pool.run([&](int lane, int) {
      pool.barrier(lane);
      ++calls;
      pool.barrier(lane);
    });
  }
  return calls == 20 * lanes;
}

TEST(Fork, PoolsOfAnyLanesComputeInChildrenOfChildrenAndInTheParent) {
  LOOM_NEEDS_THREADS_AFTER_FORK();
  for (const int lanes : {1, 2, 3, 4, 8, 16}) {
    for (const bool used : {false, true}) {
      ThreadPool pool(lanes, /*exact=*/true);
      if (used) {
        EXPECT_TRUE(computes(pool, lanes));
      }
      EXPECT_TRUE(in_child([&] {
        return computes(pool, lanes) && in_child([&] { return computes(pool, lanes); }) &&
               computes(pool, lanes);
      })) << lanes;
      EXPECT_TRUE(computes(pool, lanes));
    }
  }
}

TEST(Fork, PoolsThatAreNotExactComputeInAChild) {
  LOOM_NEEDS_THREADS_AFTER_FORK();
  ThreadPool pool(0);
  std::atomic<int> calls{0};
  pool.run([&](int, int) { ++calls; });
  EXPECT_TRUE(in_child([&] {
    std::atomic<int64_t> sum{0};
    for (int i = 0; i < 100; ++i) {
      pool.run([&](int lane, int count) {
        const LaneRange range = lane_range(1000, 1, lane, count);
        for (int64_t x = range.begin; x < range.end; ++x) sum += x;
      });
    }
    return sum == 100 * 499'500;
  }));
}

TEST(Fork, PoolsEndInAChildUsedOrNot) {
  LOOM_NEEDS_THREADS_AFTER_FORK();
  for (const bool used : {false, true}) {
    auto pool = std::make_unique<ThreadPool>(4, true);
    EXPECT_TRUE(in_child([&] {
      const bool good = !used || computes(*pool, 4);
      pool.reset();
      ThreadPool own(3, true);
      return good && computes(own, 3);
    }));
    EXPECT_TRUE(computes(*pool, 4));
  }
}

// Another thread of the parent is running regions, and makes and destroys pools.
TEST(Fork, WhileOthersComputeTheChildComputes) {
  LOOM_NEEDS_THREADS_AFTER_FORK();
  ThreadPool pool(3, true);
  std::atomic<bool> stop{false};
  std::thread regions([&] {
    while (!stop) EXPECT_TRUE(computes(pool, 3));
  });
  std::thread makers([&] {
    while (!stop) ThreadPool other(2, true);
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(in_child([&] { return computes(pool, 3); }));
  }
  stop = true;
  regions.join();
  makers.join();
}

TEST(Fork, WatchesTellAChildFromItsParent) {
  const ForkWatch watch;
  EXPECT_FALSE(watch.forked());
  EXPECT_TRUE(in_child([&] {
    const ForkWatch own;
    return watch.forked() && !own.forked();
  }));
  EXPECT_FALSE(watch.forked());
}

}  // namespace
}  // namespace loom::core

#endif
