// The share of labels among the k largest outputs, of equal ones the first; of targets 0 and 1 the
// share of values on the right side.
#include "learn/metrics/metric.hpp"

namespace loom::core {
namespace {

bool is_among(std::span<const float> row, size_t label, size_t k) {
  size_t before = 0;
  for (size_t c = 0; c < row.size(); ++c)
    before += row[c] > row[label] || (row[c] == row[label] && c < label) ? 1 : 0;
  return before < k;
}

double accuracy(const ScoredOutputs& s, size_t k) {
  int64_t right = 0;
  for (size_t i = 0; i < s.rows.size(); ++i) {
    const std::span<const float> row = s.row(i);
    if (s.classes()) {
      right += is_among(row, s.label(i), k) ? 1 : 0;
      continue;
    }
    for (size_t c = 0; c < s.width; ++c)
      right += (row[c] > 0.0f) == (s.target(i, c) >= 0.5f) ? 1 : 0;
  }
  const size_t of = s.classes() ? s.rows.size() : s.outputs.size();
  return fraction(static_cast<double>(right), static_cast<double>(of));
}

}  // namespace

extern const MetricDef kAccuracyMetric, kTopMetric;
const MetricDef kAccuracyMetric = {.for_classes = true, .for_binary = true, .value = accuracy};
const MetricDef kTopMetric = {.counted = "top", .for_classes = true, .value = accuracy};

}  // namespace loom::core
