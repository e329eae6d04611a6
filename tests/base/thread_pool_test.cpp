// ThreadPool: regions, barriers, parking, and the division of work among lanes. Lanes are
// oversubscribed on purpose: the guarantees hold on one core.
#include "base/threads/thread_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/threads/lane_rest.hpp"
#include "base/threads/parked.hpp"
#include "base/threads/thread_clock.hpp"
#include "base/waits.hpp"

namespace loom::core {
namespace {

using test::wait_until;

// Waits until all workers of the only pool sleep.
bool park(const ThreadPool& pool) {
  return wait_until([&] { return parked_workers() == pool.lanes() - 1; });
}

class Pools : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, Pools, testing::Values(1, 2, 3, 7));

TEST_P(Pools, RunEveryLaneOnceAndWaitForAll) {
  ThreadPool pool(GetParam(), /*exact=*/true);
  ASSERT_EQ(pool.lanes(), GetParam());
  std::vector<int> calls(static_cast<size_t>(pool.lanes()));
  for (int round = 1; round <= 100; ++round) {
    pool.run([&](int lane, int) { ++calls[static_cast<size_t>(lane)]; });
    for (int count : calls) ASSERT_EQ(count, round);
  }
}

TEST_P(Pools, BarriersMakeEarlierWritesOfAllLanesVisible) {
  ThreadPool pool(GetParam(), true);
  const auto lanes = static_cast<size_t>(pool.lanes());
  std::vector<int> board(lanes);
  std::vector<int> wrong(lanes);
  pool.run([&](int lane, int) {
    for (int round = 1; round <= 300; ++round) {
      board[static_cast<size_t>(lane)] = round;
      pool.barrier(lane);
      for (int seen : board) wrong[static_cast<size_t>(lane)] += seen != round ? 1 : 0;
      pool.barrier(lane);
    }
  });
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
}

TEST_P(Pools, LaneZeroIsTheCaller) {
  ThreadPool pool(GetParam(), true);
  std::thread::id lane_zero;
  pool.run([&](int lane, int) {
    if (lane == 0) lane_zero = std::this_thread::get_id();
  });
  EXPECT_EQ(lane_zero, std::this_thread::get_id());
}

TEST_P(Pools, WakeAfterHavingParked) {
  ThreadPool pool(GetParam(), true);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(park(pool));
    std::vector<int> calls(static_cast<size_t>(pool.lanes()));
    pool.run([&](int lane, int) { calls[static_cast<size_t>(lane)] = 1; });
    EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), pool.lanes());
  }
}

// It takes a second, or minutes if other programs use the cores; then fewer are enough.
TEST(ThreadPool, TenThousandRegionsLoseNoUpdate) {
  ThreadPool pool(3, true);
  std::vector<int64_t> counts(3);
  const int64_t end = now_ns() + 30'000'000'000;
  int64_t region = 0;
  for (; region < 10000 && (region < 1000 || now_ns() < end); ++region) {
    pool.run([&](int lane, int) {
      ++counts[static_cast<size_t>(lane)];
      if (region % 16 == 0) pool.barrier(lane);
    });
  }
  EXPECT_EQ(counts, std::vector<int64_t>(3, region));
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

TEST(ThreadPool, TakesRegionsOfSeveralThreadsInTurn) {
  ThreadPool pool(3, /*exact=*/true);
  std::atomic<int> inside{0}, met{0};
  std::atomic<int64_t> calls{0};
  const auto client = [&](int most) {
    for (int round = 0; round < 500; ++round) {
      pool.run(
          [&](int lane, int) {
            if (lane == 0 && inside.fetch_add(1) > 0) ++met;
            pool.barrier(lane);
            ++calls;
            if (lane == 0) --inside;
          },
          {.max_lanes = most});
    }
  };
  std::thread one([&] { client(3); }), two([&] { client(3); }), three([&] { client(1); });
  one.join();
  two.join();
  three.join();
  EXPECT_EQ(met.load(), 0);
  EXPECT_EQ(calls.load(), 3 * 3 * 500);  // an exact pool has all lanes in every region
}

TEST(ThreadPool, TwoPoolsDoNotMeet) {
  ThreadPool a(2, true), b(2, true);
  int sum = 0;
  a.run([&](int lane_a, int) {
    if (lane_a == 0) {
      std::vector<int> hits(2);
      b.run([&](int lane_b, int) {
        b.barrier(lane_b);
        hits[static_cast<size_t>(lane_b)] = 1;
      });
      sum = hits[0] + hits[1];
    }
    a.barrier(lane_a);
  });
  EXPECT_EQ(sum, 2);
}

int lanes_of_a_large_region(ThreadPool& pool) {
  int seen = 0;
  pool.run([&](int lane, int lanes) {
    if (lane == 0) seen = lanes;
  });
  return seen;
}

// The number of lanes of a region that requests all awake ones.
int lanes_of_a_small_region(ThreadPool& pool) {
  int seen = 0;
  auto body = [&](int lane, int lanes) {
    if (lane == 0) seen = lanes;
  };
  pool.run(body, {.worth_waking = false});
  return seen;
}

TEST(BusyHost, SmallRegionsDoNotWaitForSleepers) {
  for (int round = 0; round < 5; ++round) {
    ThreadPool pool(2);  // a new one: a small region may wake the worker for those that follow
    if (pool.lanes() < 2) GTEST_SKIP() << "one core";
    ASSERT_TRUE(park(pool));
    EXPECT_EQ(lanes_of_a_small_region(pool), 1);
  }
}

TEST(BusyHost, WorkersComeBackWhileSmallRegionsFollowEachOther) {
  ThreadPool pool(2);
  if (pool.lanes() < 2) GTEST_SKIP() << "one core";
  ASSERT_TRUE(park(pool));
  // Without a pause between them: a worker sleeps after a millisecond without work.
  const auto comes_back = [&] {
    for (int i = 0; i < 1000; ++i) {
      if (lanes_of_a_small_region(pool) == 2) return true;
    }
    return false;
  };
  EXPECT_TRUE(wait_until(comes_back));
}

TEST(BusyHost, LargeRegionsWakeEveryLane) {
  ThreadPool pool(2);
  if (pool.lanes() < 2) GTEST_SKIP() << "one core";
  ASSERT_TRUE(park(pool));
  EXPECT_EQ(lanes_of_a_large_region(pool), 2);
}

// Runs a large region whose lane `late` does not run for a while: it sleeps, as if another program
// had its core. Returns the number of lanes of the next region.
int lanes_after_a_loss(ThreadPool& pool, int late) {
  pool.run([&](int lane, int) {
    if (lane == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.barrier(lane);
  });
  return lanes_of_a_large_region(pool);
}

TEST(BusyHost, ALaneThatWasNotRunningRestsAndComesBack) {
  for (const int late : {0, 1}) {
    ThreadPool pool(2);
    if (pool.lanes() < 2) GTEST_SKIP() << "one core";
    // On a busy machine the other lane may not have waited, or a rest of 10 ms may be over before
    // the next region.
    EXPECT_TRUE(wait_until([&] { return lanes_after_a_loss(pool, late) == 1; })) << "lane " << late;
    EXPECT_TRUE(wait_until([&] { return lanes_of_a_large_region(pool) == 2; })) << "lane " << late;
  }
}

TEST(BusyHost, ExactPoolsKeepTheirLanes) {
  ThreadPool pool(3, /*exact=*/true);
  for (const int late : {0, 2}) EXPECT_EQ(lanes_after_a_loss(pool, late), 3);
}

// A lane with more work must not rest. On a busy machine the lane may really lose its core for a
// while: one good round is enough.
TEST(BusyHost, ALaneThatHasMoreToDoKeepsItsPlace) {
  if (ThreadPool(2).lanes() < 2) GTEST_SKIP() << "one core";
  EXPECT_TRUE(wait_until([] {
    ThreadPool pool(2);
    pool.run([&](int lane, int) {
      const int64_t start = now_ns();
      while (lane == 1 && now_ns() - start < 1'000'000) {
      }
      pool.barrier(lane);
    });
    return lanes_of_a_large_region(pool) == 2;
  }));
}

TEST(LaneRest, LastsFourTimesTheLoss) {
  LaneRest rest;
  EXPECT_FALSE(rest.resting(1000));
  rest.lost(3000, 4000, 2, 1000);
  EXPECT_TRUE(rest.resting(1000 + 4 * 3000 - 1));
  EXPECT_FALSE(rest.resting(1000 + 4 * 3000));
}

TEST(LaneRest, NeedsALossOfMoreThanTheLanesShare) {
  for (const int lanes : {2, 4, 16}) {
    LaneRest rest;
    rest.lost(1000, 1000 * lanes, lanes, 0);
    EXPECT_FALSE(rest.resting(1)) << lanes;
    rest.lost(1001, 1000 * lanes, lanes, 0);
    EXPECT_TRUE(rest.resting(1)) << lanes;
  }
}

TEST(LaneRest, GrowsFourfoldWithLossesSoonAfterItUpToASecond) {
  LaneRest rest;
  int64_t now = 0, length = 4000;
  for (int i = 0; i < 30; ++i) {
    rest.lost(1000, 1500, 2, now);
    EXPECT_TRUE(rest.resting(now + length - 1)) << i;
    EXPECT_FALSE(rest.resting(now + length)) << i;
    now += length + 10;
    length = std::min(4 * length, LaneRest::kLongest);
  }
}

TEST(LaneRest, ForgetsAfterWorkAndNotAfterIdleTime) {
  for (const bool work : {false, true}) {
    LaneRest rest;
    rest.lost(1000, 1500, 2, 0);
    const int64_t later = 1'000'000;
    if (work) rest.worked(4001);
    rest.lost(1000, 1500, 2, later);
    EXPECT_EQ(rest.resting(later + 4000), !work);
  }
}

TEST(Regions, HaveNoMoreLanesThanTheyAreWorth) {
  ThreadPool pool(2);
  int seen = 0;
  auto body = [&](int lane, int lanes) {
    if (lane == 0) seen = lanes;
  };
  pool.run(body, {.max_lanes = 1});
  EXPECT_EQ(seen, 1);
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
}  // namespace loom::core
