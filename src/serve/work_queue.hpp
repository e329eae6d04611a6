// What is computed one after another by a thread of its own, so that who reads requests need not
// wait: vectors and ranks. Bounded; what is left when it stops is dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace loom::core {

class WorkQueue {
 public:
  explicit WorkQueue(size_t most) : most_(most), thread_([this] { run(); }) {}
  ~WorkQueue() { stop(); }
  // False: as much waits as may, or it has stopped.
  bool add(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || works_.size() >= most_) return false;
      works_.push_back(std::move(work));
    }
    changed_.notify_one();
    return true;
  }
  // After what runs.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    works_.clear();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !works_.empty(); });
        if (stopping_) return;
        next = std::move(works_.front());
        works_.pop_front();
      }
      next();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loom::core
