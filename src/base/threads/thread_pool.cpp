#include "base/threads/thread_pool.hpp"

#include "base/threads/parked.hpp"

#if LOOM_THREADS
#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/control_groups.hpp"
#include "base/threads/lane_rest.hpp"
#include "base/threads/thread_clock.hpp"
#endif

#if defined(__linux__)
#include <sched.h>
#endif
#if LOOM_THREADS && (defined(__unix__) || defined(__APPLE__))
#include <pthread.h>
#endif

namespace loom::core {

#if LOOM_THREADS

namespace {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Nanoseconds that a lane spins, and its total wait before it sleeps. They are times, not counts of
// `pause`, which takes 20 to 140 cycles depending on the processor.
constexpr int64_t kSpin = 20'000, kAwake = 1'000'000;
// A lane that others wait for has lost its core if it did not run for this part of the region.
constexpr int64_t kLostPart = 8;
// A worker that waits for work records the time at least this often while it runs.
constexpr int64_t kFresh = 10'000;

std::atomic<int> parked{0};

// Spins, then yields, until ready() or the time limit; passes the time to tick() now and then. True
// if ready.
template <class Ready, class Tick>
bool wait_awake(Ready ready, Tick tick) {
  constexpr int kEager = 32, kUnclocked = 32, kBetweenClocks = 8;
  const auto spin = [&](int times) {
    for (int i = 0; i < times; ++i) {
      if (ready()) return true;
      cpu_relax();
    }
    return false;
  };
  // Polls eagerly first: a `pause` may take longer than the wait.
  for (int i = 0; i < kEager; ++i) {
    if (ready()) return true;
  }
  if (spin(kUnclocked)) return true;
  const int64_t start = now_ns();
  for (int64_t now = start; now - start < kSpin; now = now_ns()) {
    tick(now);
    if (spin(kBetweenClocks)) return true;
  }
  for (int64_t now = now_ns(); now - start < kAwake; now = now_ns()) {
    tick(now);
    if (ready()) return true;
    std::this_thread::yield();
  }
  return ready();
}

// The order of lane 0 to a worker, in one word. It has the worker's lane in the next region (0
// means only to stay awake) and the number of lanes. A count makes each order differ from the
// previous one.
constexpr int kLaneBits = 10, kMaxLanes = 1 << kLaneBits;

uint32_t make_order(uint32_t count, int lane, int lanes) {
  return count << (2 * kLaneBits) | static_cast<uint32_t>(lane) << kLaneBits |
         static_cast<uint32_t>(lanes - 1);
}
int lane_of(uint32_t order) {
  return static_cast<int>(order >> kLaneBits) % kMaxLanes;
}
int lanes_of(uint32_t order) {
  return static_cast<int>(order % kMaxLanes) + 1;
}

}  // namespace

struct ThreadPool::Impl {
  // One thread: worker i is at index i, the caller at 0.
  struct Worker {
    alignas(128) std::atomic<uint32_t> order{0};  // written by lane 0
    uint32_t orders = 0;                          // how many, known to lane 0
    LaneRest rest;
    // In this region: when others began to wait for it, and its processor time then; -1 if none
    // did.
    int64_t watched_at = -1, ran = 0;
    alignas(128) std::atomic<int64_t> awake_at{0};  // written by the worker while it waits
    std::atomic<bool> asleep{false};
    std::atomic<uint32_t> arrivals{0};  // in this region: barriers reached, and its end
    std::atomic<int64_t> slept{0};      // in this region, at barriers, voluntarily
    // In this region: barriers that the lane and all lanes below it in the tree have reached.
    alignas(128) std::atomic<uint32_t> joined{0};
    int64_t waited = 0;  // in this region, for lanes that it watches
    ThreadClock clock;
  };

  explicit Impl(int most) : workers(static_cast<size_t>(most)), members(workers.size()) {}

  Function function = nullptr;
  void* context = nullptr;
  // The mutex of run(), which serializes threads. Recursive, because a region of one lane may start
  // another.
  std::recursive_mutex mutex;
  int lanes = 1;  // of this region
  bool exact = false;
  int64_t began = 0, ended = 0;                 // the last region
  alignas(128) std::atomic<int> running{0};     // workers still inside the region
  alignas(128) std::atomic<uint32_t> sense{0};  // one more per barrier passed
  std::atomic<int> sleepers{0};                 // lanes asleep inside a region
  std::atomic<bool> stop{false};
  std::vector<Worker> workers;
  std::vector<int> members;  // lane of this region -> index of its worker
  std::vector<std::thread> threads;

  Worker& at(int lane) { return workers[static_cast<size_t>(members[static_cast<size_t>(lane)])]; }
  void work(Worker& me);
  void give(Worker& worker, int lane, int lanes);
  bool takes_part(Worker& worker, const Region& region);
  void choose(const Region& region);
  bool lost_its_core(const Worker& worker) const;
  void rest_late_workers();
  template <class Word>
  void sleep_on(const std::atomic<Word>& word, Word old, Worker& me);
};

namespace {

// Records which lane another lane waits for after its spin time. Lane 0 records workers and lane 1
// records lane 0, so only one lane writes each `watched_at` and `ran`. After the region it is
// decided whether the lane was late because it did not run.
template <class Impl>
class Watch {
 public:
  Watch(Impl& pool, int lane)
      : pool_(pool),
        first_(lane == 0 ? 1 : 0),
        end_(lane == 0   ? pool.lanes
             : lane == 1 ? 1
                         : 0) {
    arrivals_ = pool.at(lane).arrivals.load(std::memory_order_relaxed);
  }
  void tick(int64_t now) {
    if (start_ == 0) start_ = now;
    if (!looked_ && now - start_ >= kSpin) look(now);
  }
  // The wait is over.
  void end(typename Impl::Worker& me) {
    if (late_) me.waited += now_ns() - start_;
  }

 private:
  void look(int64_t now) {
    looked_ = true;
    for (int lane = first_; lane < end_; ++lane) {
      auto& other = pool_.at(lane);
      if (other.arrivals.load(std::memory_order_relaxed) == arrivals_) continue;
      late_ = true;
      if (other.watched_at >= 0) continue;
      other.watched_at = now;
      other.ran = other.clock.ran_ns();
    }
  }

  Impl& pool_;
  int first_, end_;
  uint32_t arrivals_ = 0;
  int64_t start_ = 0;
  bool looked_ = false, late_ = false;
};

}  // namespace

// All pools of this process. A fork waits while a pool is being made or destroyed.
struct ThreadPool::Forks {
  std::mutex mutex;
  std::vector<ThreadPool*> pools;

  // Never destroyed: otherwise it would end before pools of static lifetime.
  static Forks& all() {
    static Forks* const forks = make();
    return *forks;
  }
  static Forks* make() {
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); }, in_child);
#endif
    return new Forks;
  }
  // Leaks the state of an unfinished region, and the handles of threads that do not exist here:
  // nothing can be done with them.
  static void in_child() {
    parked = 0;
    for (ThreadPool* pool : all().pools) {
      if (pool->lanes_ == 1) continue;
      const bool exact = pool->impl_->exact;
      static_cast<void>(pool->impl_.release());
      pool->impl_ = std::make_unique<Impl>(pool->lanes_);
      pool->impl_->exact = exact;
    }
    all().mutex.unlock();
  }
  void add(ThreadPool* pool) {
    const std::lock_guard lock(mutex);
    pools.push_back(pool);
  }
  void remove(ThreadPool* pool) {
    const std::lock_guard lock(mutex);
    std::erase(pools, pool);
  }
};

int parked_workers() {
  return parked.load();
}

int ThreadPool::available_cores() {
  int cores = 0;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
#endif
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const int quota = control_group_cores();
  if (quota > 0 && quota < cores) cores = quota;
  return cores > 0 ? cores : 1;
}

ThreadPool::ThreadPool(int requested, bool exact) {
  lanes_ = requested;
  const int cores = lanes_ == 1 ? 1 : available_cores();  // one lane does not ask the system
  if (lanes_ <= 0 || (!exact && lanes_ > cores)) lanes_ = cores;
  lanes_ = std::min(lanes_, kMaxLanes);
  impl_ = std::make_unique<Impl>(lanes_);
  impl_->exact = exact;
  start_workers();
  Forks::all().add(this);
}

void ThreadPool::start_workers() {
  Impl& s = *impl_;
  for (int i = 1; i < lanes_; ++i) {
    Impl::Worker& worker = s.workers[static_cast<size_t>(i)];
    s.threads.emplace_back([&s, &worker] { s.work(worker); });
    worker.clock = ThreadClock::of(s.threads.back().native_handle());
  }
}

ThreadPool::~ThreadPool() {
  Forks::all().remove(this);
  impl_->stop = true;
  for (size_t i = 1; i < impl_->workers.size(); ++i) impl_->give(impl_->workers[i], 0, 1);
  for (std::thread& thread : impl_->threads) thread.join();
}

void ThreadPool::Impl::work(Worker& me) {
  uint32_t seen = 0;
  while (true) {
    const auto ordered = [&] { return me.order.load(std::memory_order_acquire) != seen; };
    const auto tick = [&](int64_t now) { me.awake_at.store(now, std::memory_order_relaxed); };
    if (!wait_awake(ordered, tick)) {
      me.asleep.store(true);
      ++parked;
      me.order.wait(seen);
      --parked;
      me.asleep.store(false);
    }
    seen = me.order.load(std::memory_order_acquire);
    if (stop.load()) return;
    if (lane_of(seen) == 0) continue;
    function(context, lane_of(seen), lanes_of(seen));
    me.arrivals.fetch_add(1, std::memory_order_relaxed);
    tick(now_ns());
    if (running.fetch_sub(1) == 1 && sleepers.load() > 0) running.notify_all();
  }
}

// A worker first sets its sleep flag and then waits for the order to change. Lane 0 first writes
// the order and then reads the flag. All of it is sequentially consistent, so either the worker
// sees the order or lane 0 sees the sleeper.
void ThreadPool::Impl::give(Worker& worker, int lane, int lane_count) {
  worker.order.store(make_order(++worker.orders, lane, lane_count));
  if (worker.asleep.load()) worker.order.notify_one();
}

// Sleeps until `word` differs from `old`. The thread that changes it wakes the sleepers, if there
// are any.
template <class Word>
void ThreadPool::Impl::sleep_on(const std::atomic<Word>& word, Word old, Worker& me) {
  const int64_t start = now_ns();
  sleepers.fetch_add(1);
  word.wait(old);
  sleepers.fetch_sub(1);
  me.slept.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

// Whether this worker should take part in a region that starts now. A sleeping worker is woken for
// the following regions, if regions do follow each other.
bool ThreadPool::Impl::takes_part(Worker& worker, const Region& region) {
  if (exact) return true;
  if (worker.rest.resting(began)) return false;
  if (region.worth_waking) return true;
  if (worker.asleep.load(std::memory_order_relaxed)) {
    if (began - ended < kAwake) give(worker, 0, 1);
    return false;
  }
  return began - worker.awake_at.load(std::memory_order_relaxed) < kFresh;
}

void ThreadPool::Impl::choose(const Region& region) {
  began = now_ns();
  lanes = 1;
  for (size_t i = 1; i < workers.size() && (exact || lanes < region.max_lanes); ++i) {
    if (takes_part(workers[i], region)) members[static_cast<size_t>(lanes++)] = static_cast<int>(i);
  }
}

// Whether the lane was ready to run in this region and did not run for a large part of it.
bool ThreadPool::Impl::lost_its_core(const Worker& worker) const {
  if (worker.watched_at < 0 || worker.ran < 0) return false;
  const int64_t ran = worker.clock.ran_ns() - worker.ran;
  const int64_t slept = worker.slept.load(std::memory_order_relaxed);
  return (ended - worker.watched_at - ran - slept) * kLostPart > ended - began;
}

// After a region: workers that did not run while others waited for them rest. The caller cannot
// rest. If it lost its core, one thread fewer frees a core for it.
void ThreadPool::Impl::rest_late_workers() {
  ended = now_ns();
  if (exact) return;
  const int64_t waited = at(0).waited + at(1).waited;
  const bool caller_too = waited > 0 && lost_its_core(workers[0]);
  for (int lane = 1; lane < lanes; ++lane) {
    LaneRest& rest = at(lane).rest;
    if (waited > 0 && (lost_its_core(at(lane)) || (caller_too && lane == lanes - 1))) {
      rest.lost(waited, ended - began, lanes, ended);
    } else {
      rest.worked(ended - began);
    }
  }
}

void ThreadPool::run(Function fn, void* context, const Region& region) {
  Impl& s = *impl_;
  if (lanes_ == 1) return fn(context, 0, 1);
  const std::lock_guard one_at_a_time(s.mutex);
  if (s.threads.empty()) start_workers();  // the first region of a child process
  if (region.max_lanes == 1 && !s.exact) {
    s.lanes = 1;
    fn(context, 0, 1);
    return;
  }
  s.choose(region);
  if (s.lanes == 1) {
    fn(context, 0, 1);
    s.ended = now_ns();
    return;
  }
  s.function = fn;
  s.context = context;
  s.workers[0].clock = ThreadClock::of_this_thread();
  s.running.store(s.lanes - 1, std::memory_order_relaxed);
  for (int lane = 0; lane < s.lanes; ++lane) {
    Impl::Worker& worker = s.at(lane);
    worker.watched_at = -1;
    worker.waited = 0;
    worker.arrivals.store(0, std::memory_order_relaxed);
    worker.joined.store(0, std::memory_order_relaxed);
    worker.slept.store(0, std::memory_order_relaxed);
  }
  for (int lane = 1; lane < s.lanes; ++lane) s.give(s.at(lane), lane, s.lanes);
  fn(context, 0, s.lanes);
  s.workers[0].arrivals.fetch_add(1, std::memory_order_relaxed);
  Watch watch(s, 0);
  const auto done = [&] { return s.running.load() == 0; };
  while (!wait_awake(done, [&](int64_t now) { watch.tick(now); })) {
    if (const int left = s.running.load(); left > 0) s.sleep_on(s.running, left, s.workers[0]);
  }
  watch.end(s.workers[0]);
  s.rest_late_workers();
}

// Lanes arrive along a tree: lane i waits for lanes 4i + 1 to 4i + 4. So no two lanes add to one
// counter, which would cost a tenth of a microsecond each. The root releases all lanes.
void ThreadPool::barrier(int lane) {
  constexpr int kBelow = 4;
  Impl& s = *impl_;
  if (s.lanes == 1) return;
  Impl::Worker& me = s.at(lane);
  const uint32_t count = me.arrivals.load(std::memory_order_relaxed) + 1;
  me.arrivals.store(count, std::memory_order_relaxed);
  const uint32_t sense = s.sense.load(std::memory_order_acquire);
  Watch watch(s, lane);
  const auto wait_for = [&](const std::atomic<uint32_t>& word, uint32_t old) {
    const auto changed = [&] { return word.load(std::memory_order_acquire) != old; };
    while (!wait_awake(changed, [&](int64_t now) { watch.tick(now); })) s.sleep_on(word, old, me);
  };
  const int first = kBelow * lane + 1;
  for (int below = first; below < first + kBelow && below < s.lanes; ++below)
    wait_for(s.at(below).joined, count - 1);
  std::atomic<uint32_t>& word = lane == 0 ? s.sense : me.joined;
  word.store(lane == 0 ? sense + 1 : count);
  if (s.sleepers.load() > 0) word.notify_all();
  if (lane != 0) wait_for(s.sense, sense);
  watch.end(me);
}

#elif !defined(__wasi__)  // one lane, no threads

struct ThreadPool::Impl {};

int parked_workers() {
  return 0;
}
int ThreadPool::available_cores() {
  return 1;
}
ThreadPool::ThreadPool(int, bool) {}
ThreadPool::~ThreadPool() = default;
void ThreadPool::run(Function fn, void* context, const Region&) {
  fn(context, 0, 1);
}
void ThreadPool::barrier(int) {}

#endif

}  // namespace loom::core
