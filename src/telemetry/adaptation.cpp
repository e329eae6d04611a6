// Accuracy by windows of time while tasks change: loom::AdaptationTracker.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/result.hpp"
#include "base/text.hpp"
#include "loom/evaluation.hpp"

namespace loom {
namespace {

constexpr double kMaxWindows = 1e6;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

AdaptationTracker::AdaptationTracker(const AdaptationOptions& options) : options_(options) {
  if (!options_.clock) options_.clock = steady_seconds;
  const auto count = static_cast<size_t>(std::max(1.0, options.duration / options.window));
  windows_.resize(count);
  schedule_.push_back({});
}

Result<AdaptationTracker> AdaptationTracker::create(const AdaptationOptions& options) {
  if (!(options.window > 0) || !(options.duration > 0))
    return core::invalid("duration and window must be above 0 seconds");
  if (!(options.duration / options.window <= kMaxWindows))
    return core::invalid(core::cat("a duration of ", options.duration, " s has more than ",
                                   kMaxWindows, " windows of ", options.window, " s"));
  if (!(options.threshold >= 0 && options.threshold <= 100))
    return core::invalid(
        core::cat("threshold is ", options.threshold, ", must be between 0 and 100"));
  return AdaptationTracker(options);
}

Status AdaptationTracker::schedule(double at, int64_t task) {
  if (started_) return core::invalid("tasks are scheduled before start()");
  if (!(at > schedule_.back().at) || !(at < options_.duration))
    return core::invalid(core::cat("a task at ", at, " s must come after ", schedule_.back().at,
                                   " s and before ", options_.duration, " s"));
  schedule_.push_back({at, task});
  return {};
}

void AdaptationTracker::start(int64_t task) {
  schedule_.front() = {0, task};
  begin_ = options_.clock();
  started_ = true;
  for (size_t i = 0; i < windows_.size(); ++i) {
    windows_[i] = {};
    windows_[i].task = task_at(static_cast<double>(i) * options_.window);
  }
}

double AdaptationTracker::elapsed() const {
  return started_ ? std::max(0.0, options_.clock() - begin_) : 0.0;
}

int64_t AdaptationTracker::task_at(double seconds) const {
  int64_t task = schedule_.front().task;
  for (const Entry& e : schedule_) {
    if (e.at <= seconds) task = e.task;
  }
  return task;
}

int64_t AdaptationTracker::task() const {
  return task_at(elapsed());
}

bool AdaptationTracker::over() const {
  return elapsed() >= options_.duration;
}

int64_t AdaptationTracker::record(bool right) {
  const double now = elapsed();
  const double at = now / options_.window;
  if (started_ && at < static_cast<double>(windows_.size())) {
    AdaptationWindow& w = windows_[static_cast<size_t>(at)];
    ++w.outputs;
    w.right += right ? 1 : 0;
  }
  return task_at(now);
}

double AdaptationTracker::accuracy(int64_t window) const {
  const AdaptationWindow& w = windows_[static_cast<size_t>(window)];
  return w.outputs == 0 ? 0.0 : 100 * static_cast<double>(w.right) / static_cast<double>(w.outputs);
}

TaskChange AdaptationTracker::change(size_t entry) const {
  const auto last = static_cast<int64_t>(windows_.size()) - 1;
  const Entry& e = schedule_[entry];
  TaskChange out;
  out.at = e.at;
  out.from = schedule_[entry - 1].task;
  out.to = e.task;
  out.window_after = std::min(static_cast<int64_t>(e.at / options_.window), last);
  // A change inside of a window counts from that window on.
  out.window_before = std::max<int64_t>(out.window_after - 1, 0);
  out.before = accuracy(out.window_before);
  out.after = accuracy(out.window_after);
  const double target_accuracy =
      options_.relative ? options_.threshold / 100 * out.before : options_.threshold;
  int64_t end = last + 1;
  if (entry + 1 < schedule_.size())
    end = std::min(end, static_cast<int64_t>(std::ceil(schedule_[entry + 1].at / options_.window)));
  for (int64_t i = out.window_after; i < end; ++i) {
    if (windows_[static_cast<size_t>(i)].outputs == 0 || accuracy(i) < target_accuracy) continue;
    out.recovery_windows = i - out.window_after;
    out.recovery_seconds = static_cast<double>(out.recovery_windows) * options_.window;
    break;
  }
  return out;
}

AdaptationReport AdaptationTracker::report() const {
  AdaptationReport out;
  out.windows = windows_;
  std::vector<double> accuracies;
  for (size_t i = 0; i < windows_.size(); ++i) {
    AdaptationWindow& w = out.windows[i];
    out.outputs += w.outputs;
    w.accuracy = accuracy(static_cast<int64_t>(i));
    w.outputs_per_second = static_cast<double>(w.outputs) / options_.window;
    if (w.outputs > 0) accuracies.push_back(w.accuracy);
  }
  const Spread spread = spread_of(accuracies);
  out.average = spread.mean;
  out.least = spread.min;
  for (const double a : accuracies)
    out.variance += (a - spread.mean) * (a - spread.mean) / static_cast<double>(accuracies.size());
  for (size_t i = 1; i < schedule_.size(); ++i) {
    if (schedule_[i].at <= elapsed()) out.changes.push_back(change(i));
  }
  return out;
}

}  // namespace loom
