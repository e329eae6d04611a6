// SubmissionThread: a thread that runs jobs in order. It takes work that costs host time and whose
// result is not awaited. Without thread support, jobs run at once.
#pragma once

#include <functional>

#if LOOM_THREADS
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/threads/fork_watch.hpp"
#endif

namespace loom::core::webgpu {

class SubmissionThread {
 public:
  using Job = std::function<void()>;

#if LOOM_THREADS
  SubmissionThread() = default;
  ~SubmissionThread();  // after the last job
  SubmissionThread(const SubmissionThread&) = delete;
  SubmissionThread& operator=(const SubmissionThread&) = delete;

  // The first job starts the thread. Blocks while the queue is full.
  void later(Job job);
  // Waits until all jobs so far are done; their effects are visible to the caller. Returns at once
  // inside a job.
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
  // A forked child has no such thread. Jobs are dropped there, nothing waits for them, and the
  // object must not be destroyed.
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
