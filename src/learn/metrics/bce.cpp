// Binary cross entropy on logits: max(x, 0) - x t + log(1 + e^-|x|).
#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "learn/metrics/metric.hpp"

namespace loom::core {
namespace {

double binary_cross_entropy(const ScoredOutputs& s, size_t) {
  double sum = 0;
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    const auto x = static_cast<double>(s.outputs[i]);
    const auto t = static_cast<double>(s.target(i / s.width, i % s.width));
    sum += std::max(x, 0.0) - x * t + dmath::log(1.0 + dmath::exp(-std::fabs(x)));
  }
  return fraction(sum, static_cast<double>(s.outputs.size()));
}

}  // namespace

extern const MetricDef kBceMetric;
const MetricDef kBceMetric = {.for_binary = true, .value = binary_cross_entropy};

}  // namespace loom::core
