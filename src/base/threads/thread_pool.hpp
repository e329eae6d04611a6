// ThreadPool: persistent workers for microsecond work. The caller is lane 0 and takes part. A
// parallel region runs one function once per lane; lanes meet at barriers inside the region. There
// is no queue and no stealing: lane number and lane count determine the share of a lane, and no
// result may depend on either.
//
// The number of lanes of a region is chosen when it starts, up to what its work is worth. A worker
// may not run at that moment: it sleeps, or another program has its core. It is then skipped,
// unless the work is worth the wait. A worker that delayed the others because it was not running is
// skipped for a while (base/threads/lane_rest.hpp).
//
// Waiting is spin, then yield, then sleep, each for a limited time. A lane that waits long yields
// its core, so a busy machine slows down but does not collapse. With LOOM_THREADS=0 there is one
// lane and no thread.
//
// A child process (fork) has none of the workers: its pools start new ones at their next region. It
// does not continue a region that another thread of the parent was running.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/inline.hpp"

namespace loom::core {

// Properties of a region's work that the caller knows.
struct Region {
  int max_lanes = 1 << 30;   // more would not make it faster
  bool worth_waking = true;  // it takes longer than waking a thread
};

class ThreadPool {
 public:
  // Lanes = min(wanted, available_cores()); wanted <= 0 means all available cores. `exact`: every
  // region has exactly `wanted` lanes, even if they exceed the cores or the machine is busy (for
  // tests and measurements).
  explicit ThreadPool(int requested, bool exact = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The maximum number of lanes of a region.
  int lanes() const { return lanes_; }

  // Runs fn(context, lane, lanes) once for each lane in [0, lanes), with lanes at most
  // this->lanes(). Returns when all are done. Not reentrant. Several threads may call it
  // concurrently; their regions run one after the other.
  using Function = void (*)(void* context, int lane, int lanes);
  void run(Function fn, void* context, const Region& region);
  template <class F>
  void run(F&& body, const Region& region = {}) {
    run([](void* context, int lane,
           int lanes) { (*static_cast<std::remove_reference_t<F>*>(context))(lane, lanes); },
        &body, region);
  }

  // Inside run(): waits until every lane of the region has arrived. Every lane must call it the
  // same number of times.
  void barrier(int lane);

  // Cores this process may use: affinity mask and cgroup quota, at least 1.
  static int available_cores();

 private:
  struct Impl;
  struct Forks;  // remakes all pools of a child process
  void start_workers();
  int lanes_ = 1;
  std::unique_ptr<Impl> impl_;
};

// The share of lane `lane` of `lanes`: [begin, end) of `count` items, in multiples of `grain`.
struct LaneRange {
  int64_t begin, end;
};
LOOM_INLINE LaneRange lane_range(int64_t count, int64_t grain, int lane, int lanes) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t begin = units * lane / lanes * grain;
  const int64_t end = units * (lane + 1) / lanes * grain;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace loom::core
