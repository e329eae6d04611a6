// The mean absolute error, and the coefficient of determination (RegressionMetrics).
#include <algorithm>

#include "learn/metrics/metric.hpp"
#include "learn/metrics/output_scores.hpp"

namespace loom::core {
namespace {

RegressionMetrics regression_of(const ScoredOutputs& s) {
  RegressionMetrics metrics(s.width);
  const std::vector<float>& weights = s.data.weights;
  const size_t rows = s.data.targets.size() / s.width;
  const size_t per_sample = rows / static_cast<size_t>(std::max<int64_t>(s.data.samples, 1));
  for (size_t i = 0; i < s.rows.size(); ++i) {
    const double weight =
        weights.empty() ? 1.0 : static_cast<double>(weights[s.rows[i] / per_sample]);
    metrics.add(s.row(i), std::span(s.data.targets).subspan(s.rows[i] * s.width, s.width), weight);
  }
  return metrics;
}

double mean_absolute_error(const ScoredOutputs& s, size_t) {
  return s.rows.empty() ? kUnknown : regression_of(s).mean_absolute_error();
}

double determination(const ScoredOutputs& s, size_t) {
  return regression_of(s).r2().value_or(kUnknown);
}

}  // namespace

extern const MetricDef kMaeMetric, kR2Metric;
const MetricDef kMaeMetric = {.for_numbers = true, .value = mean_absolute_error};
const MetricDef kR2Metric = {.for_numbers = true, .value = determination};

}  // namespace loom::core
