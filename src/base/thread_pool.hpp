// ThreadPool: persistent workers for microsecond work. The caller is lane 0 and takes part; a
// parallel region runs one function once per lane; lanes meet at barriers inside the region. No
// queue, no stealing: who does what is fixed by the lane number, so results never depend on timing.
//
// Waiting is spin, then yield, then park: a lane that waits long gives its core away, so an
// oversubscribed machine slows down but does not collapse. With LOOM_THREADS=0 there is one lane
// and no thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/inline.hpp"

namespace loom {

class ThreadPool {
 public:
  // Lanes = min(wanted, available_cores()) unless `oversubscribe`; wanted <= 0 means all available
  // cores.
  explicit ThreadPool(int wanted, bool oversubscribe = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int lanes() const { return lanes_; }

  // Runs fn(context, lane) once for each lane in [0, lanes()) and returns when all are done. Not
  // reentrant.
  void run(void (*fn)(void* context, int lane), void* context);
  template <class F>
  void run(F&& body) {
    run([](void* context, int lane) { (*static_cast<std::remove_reference_t<F>*>(context))(lane); },
        &body);
  }

  // Inside run(): waits until every lane has arrived. Every lane must call it equally often.
  void barrier();

  // Cores this process may use: affinity mask and cgroup quota, at least 1.
  static int available_cores();

 private:
  struct Impl;
  void worker(int lane);
  int lanes_ = 1;
  std::unique_ptr<Impl> impl_;
};

// Lane `lane` of `lanes` gets [begin, end) of `count` items, in multiples of `grain`.
struct LaneRange {
  int64_t begin, end;
};
LOOM_INLINE LaneRange lane_range(int64_t count, int64_t grain, int lane, int lanes) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t begin = units * lane / lanes * grain;
  const int64_t end = units * (lane + 1) / lanes * grain;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace loom
