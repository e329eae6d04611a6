// ThreadPool in WebAssembly, where a module cannot start threads. Its host starts them before it
// requests work: instances of the module over one shared memory that call loom_host_worker() and
// stay in it. Without them, every region has one lane. Waiting is spin, then sleep: a lane cannot
// yield here, and a module cannot detect that it lost its core.
#ifdef __wasi__

#include <algorithm>
#include <mutex>

#include "base/threads/thread_pool.hpp"

namespace loom::core {
namespace {

constexpr int kSpins = 4000;  // loads before a lane sleeps; some ten microseconds
constexpr int kLaneBits = 8, kMaxLanes = (1 << kLaneBits) - 1;

// The workers of this module. Regions of all pools follow one another.
struct Workers {
  std::mutex turn;
  ThreadPool::Function function = nullptr;
  void* context = nullptr;
  int lanes = 1;                // of this region
  alignas(64) int ready = 0;    // workers that wait for orders; the lane of the last of them
  alignas(64) int order = 0;    // regions so far, and how many lanes this one has
  alignas(64) int running = 0;  // workers inside the region
  alignas(64) int arrived = 0;  // lanes at the barrier
  alignas(64) int sense = 0;    // barriers passed
};
Workers workers;

int load(const int& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// Waits until `word` differs from `old`; returns the new value.
int wait_while(int& word, int old) {
  for (;;) {
    for (int i = 0; i < kSpins; ++i) {
      const int now = load(word);
      if (now != old) return now;
    }
    __builtin_wasm_memory_atomic_wait32(&word, old, -1);
  }
}

void change(int& word, int to) {
  __atomic_store_n(&word, to, __ATOMIC_RELEASE);
  __builtin_wasm_memory_atomic_notify(&word, static_cast<unsigned>(-1));
}

}  // namespace

// The main loop of a worker. The host calls it once per instance that shares the memory.
extern "C" __attribute__((export_name("loom_host_worker"))) void loom_host_worker() {
  int seen = load(workers.order);
  const int lane = __atomic_add_fetch(&workers.ready, 1, __ATOMIC_ACQ_REL);
  for (;;) {
    seen = wait_while(workers.order, seen);
    const int lanes = seen & kMaxLanes;
    if (lane >= lanes) continue;  // a region without it, which may be over by now
    workers.function(workers.context, lane, lanes);
    if (__atomic_sub_fetch(&workers.running, 1, __ATOMIC_ACQ_REL) == 0)
      __builtin_wasm_memory_atomic_notify(&workers.running, 1);
  }
}

// The current limit of lanes of a region: one more than the workers that wait for orders.
extern "C" __attribute__((export_name("loom_host_lanes"))) int loom_host_lanes() {
  return ThreadPool::available_cores();
}

struct ThreadPool::Impl {};

int ThreadPool::available_cores() {
  return std::min(load(workers.ready) + 1, kMaxLanes);
}

ThreadPool::ThreadPool(int requested, bool) {
  lanes_ = requested <= 0 ? available_cores() : std::min(requested, available_cores());
}
ThreadPool::~ThreadPool() = default;

void ThreadPool::run(Function fn, void* context, const Region& region) {
  const int lanes = std::min(lanes_, region.max_lanes);
  if (lanes <= 1) return fn(context, 0, 1);
  const std::lock_guard<std::mutex> turn(workers.turn);
  workers.function = fn;
  workers.context = context;
  workers.lanes = lanes;
  workers.arrived = 0;
  __atomic_store_n(&workers.running, lanes - 1, __ATOMIC_RELEASE);
  change(workers.order, ((workers.order >> kLaneBits) + 1) << kLaneBits | lanes);
  fn(context, 0, lanes);
  for (int left = load(workers.running); left != 0;) left = wait_while(workers.running, left);
  workers.lanes = 1;
}

void ThreadPool::barrier(int) {
  const int lanes = workers.lanes;
  if (lanes == 1) return;
  const int sense = load(workers.sense);
  if (__atomic_add_fetch(&workers.arrived, 1, __ATOMIC_ACQ_REL) < lanes) {
    wait_while(workers.sense, sense);
    return;
  }
  __atomic_store_n(&workers.arrived, 0, __ATOMIC_RELAXED);
  change(workers.sense, sense + 1);
}

}  // namespace loom::core

#endif  // __wasi__
