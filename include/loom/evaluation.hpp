// Evaluation beyond one loss: deviation of answers, comparison of training methods over several
// seeds, and adaptation speed of a network that learns while it runs.
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

#include "loom/evaluation_options.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Statistics of the finite values of a list. deviation: sample standard deviation (n - 1); 0 for
// one value.
struct Spread {
  int64_t count = 0, not_finite = 0;
  double mean = 0, deviation = 0, min = 0, max = 0, median = 0;
};
LOOM_API Spread spread_of(std::span<const double> values);

// ---- how far answers are off --------------------------------------------------------------------

// Samples with a deviation above `above` and at most `upto` percent; the first bucket includes 0.
struct DeviationBucket {
  std::string name;  // "0-10%", ..., "100%+"
  double above = 0, upto = 0;
  std::vector<int64_t> samples;  // by order of add(), from 0
};

struct DeviationSummary {
  int64_t samples = 0;
  int64_t invalid = 0;   // answers that are not finite; they are in the last bucket
  int64_t failures = 0;  // deviations above 100 %, including the invalid ones
  // In percent. score: mean of max(0, 100 - deviation), with 0 for invalid answers. average: mean
  // deviation of the valid ones. accuracy: share of exact answers.
  double score = 0, average = 0, accuracy = 0;
};

// Deviation in percent of an answer a from a truth e: 100 |a - e| / |e|, or 100 |a - e| if |e| <
// 1e-10. For classes: 0 if they are equal, else 100.
class LOOM_API DeviationMetrics {
 public:
  struct Sample {
    int64_t index = 0;
    double answer = 0, truth = 0, deviation = 0;  // deviation: infinity for an invalid answer
  };

  void add(double answer, double truth);
  void add_class(int64_t called, int64_t is);

  DeviationSummary summary() const;  // may be called at any time
  std::vector<DeviationBucket> buckets() const;
  // The samples with the largest deviation, the earlier of equal ones first.
  std::vector<Sample> worst(int64_t count) const;
  // Errors: not_found, naming the buckets.
  Result<std::vector<Sample>> in_bucket(std::string_view name) const;
  const std::vector<Sample>& samples() const { return samples_; }

  // Infinities are written as +-1e9 and NaN as 0, with "valid": false. load() gives the same
  // summary. Errors: those of files, bad_file.
  std::string json() const;
  static Result<DeviationMetrics> from_json(std::string_view text, std::string_view where = "");
  Status save(const std::string& path) const;
  static Result<DeviationMetrics> load(const std::string& path);

 private:
  std::vector<Sample> samples_;
};

// ---- comparison of training methods -------------------------------------------------------------

struct TrainingRun {
  uint64_t seed = 0;
  int64_t parameters = 0, steps = 0;
  double loss = 0;  // on the held-out samples
  std::optional<double> accuracy{};
  double seconds = 0;                 // of training only
  std::optional<double> to_target{};  // seconds until the target was first reached
  std::vector<double> curve{};        // the compared value after each epoch
  int64_t peak_bytes = 0;             // 0 means unknown
};

struct MethodReport {
  std::string name;
  std::vector<TrainingRun> runs;
  Spread loss, accuracy, seconds, to_target;  // accuracy: of the runs that have one
  // Difference to the first method over runs with the same seeds: mean and deviation of the
  // accuracy, or of the loss without accuracies.
  Spread against_first;
};

// Methods keep the order in which they were added.
class LOOM_API TrainingComparison {
 public:
  void add(std::string_view method, TrainingRun run);
  std::vector<MethodReport> methods() const;
  // The highest mean accuracy; among methods within 0.01 of it, the least loss, then the earlier
  // one. Without accuracies, the least loss. Unset if no method has a finite loss.
  std::optional<size_t> best() const;

 private:
  struct Method {
    std::string name;
    std::vector<TrainingRun> runs;
  };
  std::vector<Method> methods_;
};

// ---- adaptation while it runs -------------------------------------------------------------------

struct AdaptationWindow {
  int64_t outputs = 0, right = 0;
  double accuracy = 0;  // percent; 0 without outputs
  double outputs_per_second = 0;
  int64_t task = 0;  // active when the window began
};

struct TaskChange {
  double at = 0;  // seconds, as scheduled
  int64_t from = 0, to = 0;
  int64_t window_before = 0, window_after = 0;
  double before = 0, after = 0;   // accuracies of these windows, in percent
  int64_t recovery_windows = -1;  // windows from window_after to the first that has recovered
  double recovery_seconds = -1;   // -1 means not before the next change or the end
};

struct AdaptationReport {
  std::vector<AdaptationWindow> windows;
  std::vector<TaskChange> changes;  // those that took place
  int64_t outputs = 0;              // inside the windows
  // Over windows with outputs: mean, variance and minimum of the accuracy.
  double average = 0, variance = 0, least = 0;
};

// Accuracy by windows of time while tasks change. One thread at a time.
class LOOM_API AdaptationTracker {
 public:
  // Errors: invalid_argument (durations must be above 0, at most 1e6 windows).
  static Result<AdaptationTracker> create(const AdaptationOptions& options = {});

  // From `at` seconds on, another task is active. Errors: invalid_argument (called after start(),
  // `at` not above 0, not after the previous one, or not within the duration).
  Status schedule(double at, int64_t task);
  void start(int64_t task);
  // The active task, by the latest entry of the schedule.
  int64_t task() const;
  bool over() const;  // the duration has passed
  // Counts an output in the current window; after the last window it is not counted. Returns the
  // active task.
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
  std::vector<Entry> schedule_;  // the first is that of start()
  std::vector<AdaptationWindow> windows_;
  double begin_ = 0;
  bool started_ = false;
};

}  // namespace loom
#endif  // LOOM_MINIMAL
