// Metrics: how good predictions are, beyond the loss. Sums are in double, in the order of the
// samples, so figures have the same bits everywhere.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "learn/data/dataset.hpp"
#include "learn/spec.hpp"

namespace loom::core {

// Scores of one class: precision = right / called so, recall = right / that are so. f1 is their
// harmonic mean. A score is 0 if its denominator is 0.
struct ClassMetrics {
  int64_t samples = 0;
  double precision = 0, recall = 0, f1 = 0;
};

// counts[class][called so].
using Confusion = std::vector<std::vector<int64_t>>;
std::vector<ClassMetrics> class_metrics(const Confusion& counts);

// Scores of numeric targets, added target by target. A weight multiplies all sums of a row.
class RegressionMetrics {
 public:
  explicit RegressionMetrics(size_t outputs) : columns_(outputs) {}
  void add(std::span<const float> predicted, std::span<const float> targets, double weight = 1);
  double mean_absolute_error() const;
  // Mean over the outputs of 1 - sum (y - p)^2 / sum (y - mean y)^2; none where an output does not
  // vary.
  std::optional<double> r2() const;

 private:
  struct Column {
    double mean = 0, away = 0, errors = 0;  // away: sum of squares from the mean (Welford, 1962)
  };
  std::vector<Column> columns_;
  double absolute_ = 0, rows_ = 0;  // rows: the sum of the weights
};

// Scores of the outputs of a network for the samples of a data set, added batch by batch
// (Trainer::evaluate). Both outlive it.
class OutputScores {
 public:
  // width: values per prediction.
  OutputScores(const Dataset& data, const LossSpec& loss, int64_t width);
  void add(int64_t first, int64_t count, const Tensor& y);

  const Confusion& confusion() const { return confusion_; }  // of labels with one head, else empty
  // For bce, focal and hinge, whose outputs are logits or margins: the share of values on the side
  // of 0 that the target has.
  std::optional<double> accuracy() const;
  // For other targets.
  std::optional<double> mean_absolute_error() const;
  std::optional<double> r2() const;

 private:
  bool numbers() const { return !data_.targets.empty() && !loss_.has_binary_targets(); }

  const Dataset& data_;
  const LossSpec& loss_;
  int64_t width_;
  Confusion confusion_;
  RegressionMetrics numbers_;
  int64_t right_ = 0, seen_ = 0;
};

}  // namespace loom::core
