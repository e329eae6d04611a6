// SubmissionThread: a thread that does jobs in their order, for what costs the host time and nobody
// waits for. Where there are no threads they are done at once.
#pragma once

#include <functional>

#if LOOM_THREADS
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/fork_watch.hpp"
#endif

namespace loom::core::webgpu {

class SubmissionThread {
 public:
  using Job = std::function<void()>;

#if LOOM_THREADS
  SubmissionThread() = default;
  ~SubmissionThread();  // behind the last job
  SubmissionThread(const SubmissionThread&) = delete;
  SubmissionThread& operator=(const SubmissionThread&) = delete;

  // The thread begins with the first job. Waits where many are waiting.
  void later(Job job);
  // All jobs so far are done, and the caller sees what they did. A job that calls it goes on.
  void drain() const;
  bool idle() const {
    return open_.load(std::memory_order_acquire) == 0;
  }

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Job> jobs_;
  std::atomic<int> open_ = 0;  // jobs that are not done
  bool stop_ = false;
  std::thread thread_;
  // A child has no such thread: jobs are dropped there, none is waited for, and the object must not
  // be destroyed.
  ForkWatch watch_;
#else
  void later(const Job& job) {
    job();
  }
  void drain() const {}
  bool idle() const {
    return true;
  }
#endif
};

}  // namespace loom::core::webgpu
