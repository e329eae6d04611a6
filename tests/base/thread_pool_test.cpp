// ThreadPool: regions, barriers, parking, and how work is cut among lanes. Lanes are oversubscribed
// on purpose: the promises hold on one core.
#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace loom {
namespace {

class Pools : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, Pools, testing::Values(1, 2, 3, 7));

TEST_P(Pools, RunEveryLaneOnceAndWaitForAll) {
  ThreadPool pool(GetParam(), /*oversubscribe=*/true);
  ASSERT_EQ(pool.lanes(), GetParam());
  std::vector<int> calls(static_cast<size_t>(pool.lanes()));
  for (int round = 1; round <= 100; ++round) {
    pool.run([&](int lane) { ++calls[static_cast<size_t>(lane)]; });
    for (int count : calls) ASSERT_EQ(count, round);
  }
}

TEST_P(Pools, BarriersMakeEarlierWritesOfAllLanesVisible) {
  ThreadPool pool(GetParam(), true);
  const auto lanes = static_cast<size_t>(pool.lanes());
  std::vector<int> board(lanes);
  std::vector<int> wrong(lanes);
  pool.run([&](int lane) {
    for (int round = 1; round <= 300; ++round) {
      board[static_cast<size_t>(lane)] = round;
      pool.barrier();
      for (int seen : board) wrong[static_cast<size_t>(lane)] += seen != round ? 1 : 0;
      pool.barrier();
    }
  });
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
}

TEST_P(Pools, LaneZeroIsTheCaller) {
  ThreadPool pool(GetParam(), true);
  std::thread::id lane_zero;
  pool.run([&](int lane) {
    if (lane == 0) lane_zero = std::this_thread::get_id();
  });
  EXPECT_EQ(lane_zero, std::this_thread::get_id());
}

TEST_P(Pools, WakeAfterHavingParked) {
  ThreadPool pool(GetParam(), true);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<int> calls(static_cast<size_t>(pool.lanes()));
    pool.run([&](int lane) { calls[static_cast<size_t>(lane)] = 1; });
    EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), pool.lanes());
  }
}

TEST(ThreadPool, TenThousandRegionsLoseNoUpdate) {
  ThreadPool pool(3, true);
  std::vector<int64_t> counts(3);
  for (int region = 0; region < 10000; ++region) {
    pool.run([&](int lane) {
      ++counts[static_cast<size_t>(lane)];
      if (region % 16 == 0) pool.barrier();
    });
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{10000, 10000, 10000}));
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(1 + i % 4, true);
}

TEST(ThreadPool, TakesNoMoreLanesThanCoresUnlessTold) {
  const int cores = ThreadPool::available_cores();
  EXPECT_GE(cores, 1);
  EXPECT_EQ(ThreadPool(0).lanes(), cores);
  EXPECT_EQ(ThreadPool(cores + 5).lanes(), cores);
  EXPECT_EQ(ThreadPool(1).lanes(), 1);
}

TEST(ThreadPool, TwoPoolsDoNotMeet) {
  ThreadPool a(2, true), b(2, true);
  int sum = 0;
  a.run([&](int lane_a) {
    if (lane_a == 0) {
      std::vector<int> hits(2);
      b.run([&](int lane_b) {
        b.barrier();
        hits[static_cast<size_t>(lane_b)] = 1;
      });
      sum = hits[0] + hits[1];
    }
    a.barrier();
  });
  EXPECT_EQ(sum, 2);
}

TEST(LaneRange, LanesCoverTheItemsExactlyAndInOrder) {
  for (int64_t count : {0, 1, 2, 15, 16, 17, 100, 1000}) {
    for (int64_t grain : {1, 2, 16, 64}) {
      for (int lanes : {1, 2, 3, 7, 64}) {
        int64_t next = 0;
        for (int lane = 0; lane < lanes; ++lane) {
          const LaneRange range = lane_range(count, grain, lane, lanes);
          ASSERT_EQ(range.begin, next) << count << " " << grain << " " << lane << "/" << lanes;
          ASSERT_LE(range.begin, range.end);
          if (range.end != count) {
            ASSERT_EQ(range.end % grain, 0);
          }
          next = range.end;
        }
        ASSERT_EQ(next, count);
      }
    }
  }
}

TEST(LaneRange, SharesDifferByAtMostOneGrain) {
  for (int lanes : {2, 3, 7}) {
    int64_t least = 1000, most = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const LaneRange range = lane_range(1000, 8, lane, lanes);
      least = std::min(least, range.end - range.begin);
      most = std::max(most, range.end - range.begin);
    }
    EXPECT_LE(most - least, 8);
  }
}

}  // namespace
}  // namespace loom
