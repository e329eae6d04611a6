// The area under the ROC curve. Two classes have the area of the second one. More classes have the
// mean over classes, each against the rest. Targets 0 and 1 have the mean over outputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "learn/metrics/scores.hpp"

namespace loom::core {

double area_under_roc(std::span<const double> scores, const std::vector<bool>& positive) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  });
  double pairs = 0, below = 0, positives = 0;
  for (size_t i = 0; i < order.size();) {
    double tied[2] = {0, 0};
    size_t end = i;
    for (; end < order.size() && scores[order[end]] == scores[order[i]]; ++end)
      tied[positive[order[end]] ? 1 : 0] += 1;
    pairs += tied[1] * (below + 0.5 * tied[0]);
    below += tied[0];
    positives += tied[1];
    i = end;
  }
  return fraction(pairs, positives * below);
}

namespace {

double auc(const ScoredOutputs& s, size_t) {
  std::vector<std::vector<double>> scores(s.width);
  for (size_t i = 0; i < s.rows.size(); ++i) {
    const std::span<const float> row = s.row(i);
    const std::vector<double> p = s.classes() ? probabilities_of(row) : std::vector<double>();
    for (size_t c = 0; c < s.width; ++c)
      scores[c].push_back(s.classes() ? p[c] : static_cast<double>(row[c]));
  }
  double sum = 0, there = 0;
  for (size_t c = s.classes() && s.width == 2 ? 1 : 0; c < s.width; ++c) {
    std::vector<bool> positive;
    for (size_t i = 0; i < s.rows.size(); ++i)
      positive.push_back(s.classes() ? s.label(i) == c : s.target(i, c) >= 0.5f);
    const double area = area_under_roc(scores[c], positive);
    if (std::isnan(area)) continue;
    sum += area;
    there += 1;
  }
  return fraction(sum, there);
}

}  // namespace

extern const MetricDef kAucMetric;
const MetricDef kAucMetric = {.for_classes = true, .for_binary = true, .value = auc};

}  // namespace loom::core
