#include "base/thread_pool.hpp"

#if LOOM_THREADS
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>
#endif

#if defined(__linux__)
#include <sched.h>
#endif

namespace loom {

#if LOOM_THREADS

namespace {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 20 us of spinning, then yields for about 1 ms; the caller parks afterwards.
constexpr int kSpins = 2000;
constexpr int kYields = 2000;

// Spins, then yields, until ready() or the patience is spent. True when ready.
template <class Ready>
bool wait_awake(Ready ready, int yields) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    cpu_relax();
  }
  for (int i = 0; i < yields; ++i) {
    if (ready()) return true;
    std::this_thread::yield();
  }
  return ready();
}

// cgroup v2 quota in whole cores, or 0 when there is none.
int cgroup_cores() {
#if defined(__linux__)
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (file == nullptr) return 0;
  long long quota = 0, period = 0;
  const int fields = std::fscanf(file, "%lld %lld", &quota, &period);
  std::fclose(file);
  if (fields == 2 && quota > 0 && period > 0)
    return static_cast<int>((quota + period - 1) / period);
#endif
  return 0;
}

}  // namespace

struct ThreadPool::Impl {
  using Function = void (*)(void*, int);
  Function function = nullptr;
  void* context = nullptr;
  alignas(128) std::atomic<uint32_t> epoch{0};  // one more per region
  alignas(128) std::atomic<int> running{0};     // workers still inside the region
  alignas(128) std::atomic<int> arrived{0};     // lanes at the barrier
  alignas(128) std::atomic<uint32_t> sense{0};  // one more per barrier passed
  std::atomic<bool> stop{false};
  std::atomic<int> parked{0};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
};

int ThreadPool::available_cores() {
  int cores = 0;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
#endif
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const int quota = cgroup_cores();
  if (quota > 0 && quota < cores) cores = quota;
  return cores > 0 ? cores : 1;
}

ThreadPool::ThreadPool(int wanted, bool oversubscribe) : impl_(std::make_unique<Impl>()) {
  const int cores = available_cores();
  lanes_ = wanted <= 0 ? cores : wanted;
  if (!oversubscribe && lanes_ > cores) lanes_ = cores;
  for (int lane = 1; lane < lanes_; ++lane) {
    impl_->threads.emplace_back([this, lane] { worker(lane); });
  }
}

ThreadPool::~ThreadPool() {
  impl_->stop = true;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->epoch.fetch_add(1);
  }
  impl_->wake.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

void ThreadPool::worker(int lane) {
  Impl& s = *impl_;
  uint32_t seen = 0;
  while (true) {
    const auto started = [&] { return s.epoch.load() != seen; };
    if (!wait_awake(started, kYields)) {
      std::unique_lock<std::mutex> lock(s.mutex);
      s.parked.fetch_add(1);
      s.wake.wait(lock, started);
      s.parked.fetch_sub(1);
    }
    ++seen;
    if (s.stop.load()) return;
    s.function(s.context, lane);
    s.running.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::run(void (*fn)(void*, int), void* context) {
  Impl& s = *impl_;
  if (lanes_ == 1) {
    fn(context, 0);
    return;
  }
  s.function = fn;
  s.context = context;
  s.running.store(lanes_ - 1, std::memory_order_relaxed);
  s.epoch.fetch_add(1);
  // A worker first counts itself as parked and only then looks at the epoch again (both
  // sequentially consistent), so either we see it parked or it sees the new epoch. Taking the mutex
  // once closes the gap before its wait.
  if (s.parked.load() > 0) {
    { std::lock_guard<std::mutex> lock(s.mutex); }
    s.wake.notify_all();
  }
  fn(context, 0);
  const auto done = [&] { return s.running.load(std::memory_order_acquire) == 0; };
  while (!wait_awake(done, kYields)) {
  }
}

void ThreadPool::barrier() {
  if (lanes_ == 1) return;
  Impl& s = *impl_;
  const uint32_t sense = s.sense.load(std::memory_order_acquire);
  if (s.arrived.fetch_add(1, std::memory_order_acq_rel) == lanes_ - 1) {
    s.arrived.store(0, std::memory_order_relaxed);
    s.sense.store(sense + 1, std::memory_order_release);
    return;
  }
  const auto passed = [&] { return s.sense.load(std::memory_order_acquire) != sense; };
  while (!wait_awake(passed, kYields)) {
  }
}

#else  // one lane, no threads

struct ThreadPool::Impl {};

int ThreadPool::available_cores() {
  return 1;
}
ThreadPool::ThreadPool(int, bool) {}
ThreadPool::~ThreadPool() = default;
void ThreadPool::run(void (*fn)(void*, int), void* context) {
  fn(context, 0);
}
void ThreadPool::barrier() {}

#endif

}  // namespace loom
