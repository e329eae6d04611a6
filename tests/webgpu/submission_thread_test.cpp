#include "backend/webgpu/runtime/submission_thread.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace loom::core::webgpu {
namespace {

TEST(SubmissionThread, DoesJobsInTheirOrderAndDrainShowsWhatTheyDid) {
  SubmissionThread thread;
  EXPECT_TRUE(thread.idle());
  thread.drain();
  std::vector<int> done;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      thread.later([&done, i] { done.push_back(i); });
    }
    thread.drain();
    EXPECT_TRUE(thread.idle());
    ASSERT_EQ(done.size(), 50U);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
    done.clear();
  }
}

TEST(SubmissionThread, DoesTheLastJobBeforeItIsGone) {
  int done = 0;
  {
    SubmissionThread thread;
    for (int i = 0; i < 3; ++i) thread.later([&done] { ++done; });
  }
  EXPECT_EQ(done, 3);
}

TEST(SubmissionThread, AJobThatDrainsGoesOn) {
  SubmissionThread thread;
  bool done = false;
  thread.later([&] {
    thread.drain();
    done = true;
  });
  thread.drain();
  EXPECT_TRUE(done);
}

#if LOOM_THREADS
TEST(SubmissionThread, WakesUpAfterALongPause) {
  SubmissionThread thread;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    thread.later([&done] { ++done; });
    thread.drain();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it parks after 0.2
  }
  EXPECT_EQ(done, 3);
}

TEST(SubmissionThread, JobsRunBesideTheCaller) {
  SubmissionThread thread;
  std::atomic<bool> go = false;
  thread.later([&] {
    while (!go) std::this_thread::yield();
  });
  EXPECT_FALSE(thread.idle());
  go = true;
  thread.drain();
}
#endif

}  // namespace
}  // namespace loom::core::webgpu
