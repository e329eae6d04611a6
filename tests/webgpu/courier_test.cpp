#include "backend/webgpu/runtime/submission_thread.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace loom::core::webgpu {
namespace {

TEST(Courier, DoesJobsInTheirOrderAndSettleShowsWhatTheyDid) {
  Courier courier;
  EXPECT_TRUE(courier.idle());
  courier.settle();
  std::vector<int> done;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      courier.later([&done, i] { done.push_back(i); });
    }
    courier.settle();
    EXPECT_TRUE(courier.idle());
    ASSERT_EQ(done.size(), 50U);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
    done.clear();
  }
}

TEST(Courier, DoesTheLastJobBeforeItIsGone) {
  int done = 0;
  {
    Courier courier;
    for (int i = 0; i < 3; ++i) courier.later([&done] { ++done; });
  }
  EXPECT_EQ(done, 3);
}

TEST(Courier, AJobThatSettlesGoesOn) {
  Courier courier;
  bool done = false;
  courier.later([&] {
    courier.settle();
    done = true;
  });
  courier.settle();
  EXPECT_TRUE(done);
}

#if LOOM_THREADS
TEST(Courier, WakesUpAfterALongPause) {
  Courier courier;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    courier.later([&done] { ++done; });
    courier.settle();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it parks after 0.2
  }
  EXPECT_EQ(done, 3);
}

TEST(Courier, JobsRunBesideTheCaller) {
  Courier courier;
  std::atomic<bool> go = false;
  courier.later([&] {
    while (!go) std::this_thread::yield();
  });
  EXPECT_FALSE(courier.idle());
  go = true;
  courier.settle();
}
#endif

}  // namespace
}  // namespace loom::core::webgpu
