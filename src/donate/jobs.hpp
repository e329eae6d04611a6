// Jobs of all connections in one line: first come, first served, by a fixed number of workers. The
// line is bounded; who comes when it is full is told so at once.
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
  // Returns what tells of the outcome (or nothing): called when the job no longer counts, so that
  // who has an answer and asks how much is under way does not find that job there.
  std::function<std::function<void()>(size_t worker)> run;
  std::function<void()> drop;  // in its place, where the line ends before its turn
};

class DonateJobs {
 public:
  // Without workers, run_one() computes. `capacity` may not be 0.
  DonateJobs(size_t capacity, size_t workers);
  ~DonateJobs();

  // Errors: out_of_range "queue full", cancelled (it stops).
  Status add(DonateJob job);
  // Runs the job that has waited longest, on this thread. False: none waits.
  bool run_one(size_t worker);
  int64_t depth() const;        // jobs that wait
  int64_t in_progress() const;  // jobs that run
  int64_t capacity() const { return static_cast<int64_t>(capacity_); }

  // Jobs that run should end: asked by what runs them.
  bool hurry() const;
  // Takes no more, drops what waits, and gives what runs so long to end before hurry(). Returns
  // when nothing runs. True: nothing had to hurry.
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
