// A bounded queue of work with separate threads, so that a thread that reads connections never
// computes. Work starts in the order of add(). Remaining work is dropped at stop().
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace loom::core {

class WorkQueue {
 public:
  // most: how much work may wait. Work that runs out of memory answers its request itself.
  explicit WorkQueue(size_t most, size_t threads = 1) : most_(most) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
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
  bool busy() const { return running_ > 0; }
  // After what runs.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
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
      try {
        ++running_;
        next();
      } catch (const std::bad_alloc&) {
        // A dropped reply informs its client.
      }
      --running_;
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  bool stopping_ = false;
  std::atomic<int> running_{0};
  std::vector<std::thread> threads_;
};

}  // namespace loom::core
