#include "remote/jobs.hpp"

#include <utility>

namespace loom::core {

DonateJobs::DonateJobs(size_t capacity, size_t workers) : capacity_(capacity) {
  for (size_t i = 0; i < workers; ++i) workers_.emplace_back([this, i] { work(i); });
}

DonateJobs::~DonateJobs() {
  stop(std::chrono::milliseconds(0));
}

Status DonateJobs::add(DonateJob job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return make_error(Code::cancelled, "the server stops");
    if (waiting_.size() >= capacity_) return make_error(Code::out_of_range, "queue full");
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return {};
}

int64_t DonateJobs::depth() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

int64_t DonateJobs::in_progress() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

bool DonateJobs::should_stop() const {
  const std::lock_guard lock(mutex_);
  return hurry_;
}

bool DonateJobs::stop(std::chrono::milliseconds grace) {
  std::deque<DonateJob> dropped;
  bool in_time = true;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
    changed_.notify_all();
    in_time = idle_.wait_for(lock, grace, [this] { return running_ == 0; });
    hurry_ = true;
  }
  for (const DonateJob& job : dropped) job.drop();
  for (std::thread& worker : workers_) {
    if (worker.joinable()) worker.join();
  }
  return in_time;
}

void DonateJobs::work(size_t worker) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
    }
    run_one(worker);
  }
}

bool DonateJobs::run_one(size_t worker) {
  DonateJob job;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;  // another worker took it
    job = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
  }
  const std::function<void()> report = job.run(worker);
  job = {};  // releases its data before it counts as done
  {
    const std::lock_guard lock(mutex_);
    --running_;
    idle_.notify_all();
  }
  if (report) report();
  return true;
}

}  // namespace loom::core
