// A queue of jobs of all connections: first come, first served, by a fixed number of workers. The
// queue is bounded; a job that arrives when it is full is refused at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

struct DonateJob {
  // Returns a function that reports the outcome (may be empty). It is called when the job no longer
  // counts, so a client that has an answer does not see its job in progress.
  std::function<std::function<void()>(size_t worker)> run;
  std::function<void()> drop;  // called instead if the queue ends before the job starts
};

class DonateJobs {
 public:
  // Without workers, run_one() computes. `capacity` may not be 0.
  DonateJobs(size_t capacity, size_t workers);
  ~DonateJobs();

  // Errors: out_of_range "queue full", cancelled (it is stopping).
  Status add(DonateJob job);
  // Runs the oldest job on this thread. Returns false if none waits.
  bool run_one(size_t worker);
  int64_t depth() const;        // waiting jobs
  int64_t in_progress() const;  // running jobs
  int64_t capacity() const { return static_cast<int64_t>(capacity_); }

  // Whether running jobs should end; they poll it.
  bool should_stop() const;
  // Refuses new jobs, drops waiting ones, and gives running ones this time before hurry(). Returns
  // when nothing runs; true if nothing had to hurry.
  bool stop(std::chrono::milliseconds grace);

 private:
  void work(size_t worker);

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<DonateJob> waiting_;
  int64_t running_ = 0;
  bool stopping_ = false, hurry_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace loom::core
