// The processor time of threads, as opposed to elapsed time. It distinguishes a busy lane from a
// lane that the system does not run.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <pthread.h>
#include <ctime>
#endif

namespace loom::core {

// Nanoseconds of a clock that never goes back.
inline int64_t now_ns() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

// The processor time of one thread of this process, which must not have ended.
class ThreadClock {
 public:
  ThreadClock() = default;

  // `thread`: as std::thread::native_handle() gives it.
  template <class Handle>
  static ThreadClock of(Handle thread) {
    ThreadClock clock;
#if defined(__linux__)
    clock.known_ = pthread_getcpuclockid(thread, &clock.id_) == 0;
#else
    static_cast<void>(thread);
#endif
    return clock;
  }
  static ThreadClock of_this_thread() {
#if defined(__linux__)
    return of(pthread_self());
#else
    return {};
#endif
  }

  // Nanoseconds that the thread has run, or -1 if the system does not report them.
  int64_t ran_ns() const {
#if defined(__linux__)
    timespec t{};
    if (known_ && clock_gettime(id_, &t) == 0) return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
#endif
    return -1;
  }

 private:
#if defined(__linux__)
  clockid_t id_{};
  bool known_ = false;
#endif
};

}  // namespace loom::core
