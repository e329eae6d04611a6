#include "backend/webgpu/runtime/submission_thread.hpp"

#if LOOM_THREADS

#include <chrono>

namespace loom::core::webgpu {
namespace {

// A submission thread stays awake for the next job for about the time of one device job. Then it
// parks.
constexpr std::chrono::microseconds kAwake{200};
constexpr int kMaxJobs = 4;

thread_local const SubmissionThread* here = nullptr;  // the thread's owner

template <class Ready>
void wait_for(Ready ready) {
  for (int i = 0; !ready(); ++i) {
    if (i < 10000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace

SubmissionThread::~SubmissionThread() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  woken_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SubmissionThread::later(Job job) {
  if (watch_.forked()) return;
  wait_for([&] { return open_.load(std::memory_order_acquire) < kMaxJobs; });
  open_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  woken_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void SubmissionThread::drain() const {
  if (here == this || watch_.forked()) return;
  wait_for([&] { return idle(); });
}

void SubmissionThread::work() {
  here = this;
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    while (idle() && std::chrono::steady_clock::now() - begin < kAwake) std::this_thread::yield();
    Job job;
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
    job = nullptr;
    open_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace loom::core::webgpu

#endif
