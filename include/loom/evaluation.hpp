// Evaluation beyond one loss: how far answers are off, several ways to train side by side over
// several seeds, and how fast a network that learns while it runs takes to a new task.
//
//   DeviationMetrics off;
//   off.add(prediction, truth);
//   print(off.summary().score, off.worst(10));
//
//   TrainingComparison all;
//   all.add("adam", {.seed = 1, .loss = 0.2, .accuracy = 0.93, .seconds = 1.5});
//   print(all.methods()[*all.best()].name);
//
// docs/evaluation.md has the definitions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Of the finite values of a list. deviation: of a sample, squares divided by n - 1; 0 of one value.
struct Spread {
  int64_t count = 0, not_finite = 0;
  double mean = 0, deviation = 0, min = 0, max = 0, median = 0;
};
LOOM_API Spread spread_of(std::span<const double> values);

// ---- how far answers are off --------------------------------------------------------------------

// Samples whose deviation is above `above` and at most `upto` percent; the first holds 0 as well.
struct DeviationBucket {
  std::string name;  // "0-10%", ..., "100%+"
  double above = 0, upto = 0;
  std::vector<int64_t> samples;  // by the order in which they were added, from 0
};

struct DeviationSummary {
  int64_t samples = 0;
  int64_t invalid = 0;   // answers that are no finite number; they are in the last bucket
  int64_t failures = 0;  // deviations above 100 %, the invalid ones included
  // In percent. score: mean of max(0, 100 - deviation), invalid answers as 0. average: mean
  // deviation of the others. accuracy: share that is exactly right.
  double score = 0, average = 0, accuracy = 0;
};

// Deviation in percent of an answer a from a truth e: 100 |a - e| / |e|, and 100 |a - e| where
// |e| < 1e-10. Of classes: 0 where they are equal, else 100.
class LOOM_API DeviationMetrics {
 public:
  struct Sample {
    int64_t index = 0;
    double answer = 0, truth = 0, deviation = 0;  // deviation: infinity of an invalid answer
  };

  void add(double answer, double truth);
  void add_class(int64_t called, int64_t is);

  DeviationSummary summary() const;  // may be asked at any time
  std::vector<DeviationBucket> buckets() const;
  // Those that are off most, the earlier of equals first.
  std::vector<Sample> worst(int64_t count) const;
  // Errors: not_found, naming the buckets.
  Result<std::vector<Sample>> in_bucket(std::string_view name) const;
  const std::vector<Sample>& samples() const { return samples_; }

  // Infinities are written as +-1e9 and NaN as 0, with "valid": false beside. load() gives the same
  // summary. Errors: those of files, bad_file.
  std::string json() const;
  static Result<DeviationMetrics> from_json(std::string_view text, std::string_view where = "");
  Status save(const std::string& path) const;
  static Result<DeviationMetrics> load(const std::string& path);

 private:
  std::vector<Sample> samples_;
};

// ---- ways to train, side by side ----------------------------------------------------------------

struct TrainingRun {
  uint64_t seed = 0;
  int64_t parameters = 0, steps = 0;
  double loss = 0;  // of the samples that are held out
  std::optional<double> accuracy{};
  double seconds = 0;                 // of training alone
  std::optional<double> to_target{};  // seconds until the target was first reached
  std::vector<double> curve{};        // what is compared, after each epoch
  int64_t peak_bytes = 0;             // 0: not known
};

struct MethodReport {
  std::string name;
  std::vector<TrainingRun> runs;
  Spread loss, accuracy, seconds, to_target;  // accuracy: of the runs that have one
  // Runs with the seeds of the first method: mean and deviation of the difference, run by run, in
  // accuracy where there is one, else in loss.
  Spread against_first;
};

// Methods keep the order in which they were first added.
class LOOM_API TrainingComparison {
 public:
  void add(std::string_view method, TrainingRun run);
  std::vector<MethodReport> methods() const;
  // Most accuracy in the mean, and among those within 0.01 of it the least loss; the earlier of
  // equals. Without accuracies the least loss. Unset: no method has a finite loss.
  std::optional<size_t> best() const;

 private:
  struct Method {
    std::string name;
    std::vector<TrainingRun> runs;
  };
  std::vector<Method> methods_;
};

// ---- adaptation while it runs -------------------------------------------------------------------

struct AdaptationOptions {
  double duration = 15, window = 1;  // seconds
  // A window after a change has recovered when its accuracy is at least `threshold` percent, or
  // with `relative` that share of the accuracy before the change.
  double threshold = 50;
  bool relative = false;
  std::function<double()> clock{};  // seconds, never falling; unset: a steady clock of the system
};

struct AdaptationWindow {
  int64_t outputs = 0, right = 0;
  double accuracy = 0;  // percent; 0 without outputs
  double outputs_per_second = 0;
  int64_t task = 0;  // in force when the window began
};

struct TaskChange {
  double at = 0;  // seconds, as it was scheduled
  int64_t from = 0, to = 0;
  int64_t window_before = 0, window_after = 0;
  double before = 0, after = 0;   // accuracies of these windows, in percent
  int64_t recovery_windows = -1;  // windows from window_after to the first that has recovered
  double recovery_seconds = -1;   // -1: not before the next change or the end
};

struct AdaptationReport {
  std::vector<AdaptationWindow> windows;
  std::vector<TaskChange> changes;  // those that came about
  int64_t outputs = 0;              // inside of the windows
  // Over windows with outputs: mean and variance of the accuracy; the least of it.
  double average = 0, variance = 0, least = 0;
};

// Accuracy by windows of time while tasks change. One thread at a time.
class LOOM_API AdaptationTracker {
 public:
  // Errors: invalid_argument (durations that are not above 0, more than 1e6 windows).
  static Result<AdaptationTracker> create(const AdaptationOptions& options = {});

  // From `at` seconds on another task is in force. Errors: invalid_argument (after start(), not
  // above 0 and later than the one before, or not within the duration).
  Status schedule(double at, int64_t task);
  void start(int64_t task);
  // The task in force now, by the last entry of the schedule that has come.
  int64_t task() const;
  bool over() const;  // the duration has passed
  // Counts an output in the window of now; one behind the last window is counted nowhere. Returns
  // the task in force for it.
  int64_t record(bool right);
  AdaptationReport report() const;

 private:
  struct Entry {
    double at = 0;
    int64_t task = 0;
  };
  explicit AdaptationTracker(const AdaptationOptions& options);
  double elapsed() const;
  int64_t task_at(double seconds) const;
  double accuracy(int64_t window) const;
  TaskChange change(size_t entry) const;

  AdaptationOptions options_;
  std::vector<Entry> schedule_;  // the first is what start() was given
  std::vector<AdaptationWindow> windows_;
  double begin_ = 0;
  bool started_ = false;
};

}  // namespace loom
#endif  // LOOM_MINIMAL
