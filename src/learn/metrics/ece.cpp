// The expected calibration error (Guo et al., 2017) of the largest probability.
#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "learn/metrics/scores.hpp"

namespace loom::core {

double expected_calibration_error(std::span<const double> confidences,
                                  const std::vector<bool>& right) {
  constexpr size_t kBins = 15;
  double counts[kBins] = {}, sums[kBins] = {}, hits[kBins] = {};
  for (size_t i = 0; i < confidences.size(); ++i) {
    const double bound = std::ceil(confidences[i] * static_cast<double>(kBins)) - 1;
    const auto bin = static_cast<size_t>(std::clamp(bound, 0.0, static_cast<double>(kBins - 1)));
    counts[bin] += 1;
    sums[bin] += confidences[i];
    hits[bin] += right[i] ? 1 : 0;
  }
  double error = 0;
  for (size_t b = 0; b < kBins; ++b) error += std::fabs(hits[b] - sums[b]);
  return fraction(error, static_cast<double>(confidences.size()));
}

namespace {

double ece(const ScoredOutputs& s, size_t) {
  std::vector<double> confidences;
  std::vector<bool> right;
  for (size_t i = 0; i < s.rows.size(); ++i) {
    const std::span<const float> row = s.row(i);
    if (s.classes()) {
      const size_t called = s.predicted(i);
      confidences.push_back(probabilities_of(row)[called]);
      right.push_back(s.label(i) == called);
      continue;
    }
    for (size_t c = 0; c < s.width; ++c) {
      const double p = 1.0 / (1.0 + dmath::exp(-static_cast<double>(row[c])));
      confidences.push_back(std::max(p, 1.0 - p));
      right.push_back((row[c] > 0.0f) == (s.target(i, c) >= 0.5f));
    }
  }
  return expected_calibration_error(confidences, right);
}

}  // namespace

extern const MetricDef kEceMetric;
const MetricDef kEceMetric = {.for_classes = true, .for_binary = true, .value = ece};

}  // namespace loom::core
