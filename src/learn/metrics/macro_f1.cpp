// The mean F1 over the classes that a label or an output names.
#include "learn/metrics/metric.hpp"
#include "learn/metrics/output_scores.hpp"

namespace loom::core {
namespace {

double macro_f1(const ScoredOutputs& s, size_t) {
  Confusion counts(s.width, std::vector<int64_t>(s.width));
  std::vector<bool> named(s.width);
  for (size_t i = 0; i < s.rows.size(); ++i) {
    const size_t called = s.predicted(i), label = s.label(i);
    ++counts[label][called];
    named[label] = named[called] = true;
  }
  double sum = 0, there = 0;
  const std::vector<ClassMetrics> metrics = class_metrics(counts);
  for (size_t c = 0; c < s.width; ++c) {
    if (!named[c]) continue;
    sum += metrics[c].f1;
    there += 1;
  }
  return fraction(sum, there);
}

}  // namespace

extern const MetricDef kMacroF1Metric;
const MetricDef kMacroF1Metric = {.for_classes = true, .value = macro_f1};

}  // namespace loom::core
