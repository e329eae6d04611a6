// Metrics that are asked for by name, of the outputs of a network beside the targets of a data set:
// accuracy, topK (top3), macro_f1, auc, ece of classes or of targets 0 and 1; bce of the latter;
// mae and r2 of numbers.
#pragma once

#include <string>
#include <vector>

#include "learn/metrics/metric.hpp"
#include "learn/metrics/output_scores.hpp"

namespace loom::core {

struct MetricValue {
  std::string name;
  double value = 0;
};

// Errors: invalid_argument, with the names that there are.
Status check_metrics(const std::vector<std::string>& names);

class MetricScores {
 public:
  // Both outlive it. width: values per prediction. Errors: a metric that does not go with what the
  // data set has, or with several heads.
  static Result<MetricScores> create(const std::vector<std::string>& names, const Dataset& data,
                                     const LossSpec& loss, int64_t width);
  // `count` samples from `first` on.
  void add(int64_t first, int64_t count, const Tensor& y);
  // A metric that the samples do not determine (the auc of one class alone) is NaN.
  std::vector<MetricValue> values() const;

 private:
  MetricScores(const Dataset& data, int64_t width) : data_(&data), width_(width) {}

  const Dataset* data_;
  int64_t width_;
  std::vector<std::string> names_;
  std::vector<size_t> rows_;    // of the predictions that count
  std::vector<float> outputs_;  // [rows][width]
};

// The area under the ROC curve. A pair has one of `positive` and one of the others. The area is the
// share of pairs in which the score of the first is larger; ties count half (Mann and Whitney,
// 1947). NaN without a pair.
double area_under_roc(std::span<const double> scores, const std::vector<bool>& positive);
// The calibration error of confidences in (0, 1]. There are 15 bins of one width, each with its
// upper bound. It is the sum over bins of n_b / n |share that is right - mean confidence| (Guo et
// al., 2017).
double expected_calibration_error(std::span<const double> confidences,
                                  const std::vector<bool>& right);

}  // namespace loom::core
