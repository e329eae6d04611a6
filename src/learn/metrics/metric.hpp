// Metrics. Each is one row in a file of this folder; registry.cpp, which is generated from
// api/options/training.toml, lists the rows. Code elsewhere asks the row, and never which metric it
// is. Sums are in double, in the order of the samples.
#pragma once

#include <limits>
#include <span>

#include "learn/data/dataset.hpp"
#include "loom/training_kinds.hpp"

namespace loom::core {

// Outputs of a network beside the targets of their data set.
struct ScoredOutputs {
  const Dataset& data;
  size_t width;                    // values per prediction
  std::span<const size_t> rows;    // of the data set, those that count
  std::span<const float> outputs;  // [rows][width]

  bool classes() const { return data.has_labels(); }
  std::span<const float> row(size_t i) const { return outputs.subspan(i * width, width); }
  size_t label(size_t i) const { return static_cast<size_t>(data.labels[rows[i]]); }
  float target(size_t i, size_t c) const { return data.targets[rows[i] * width + c]; }
  // The class of the largest output; the first of equal ones.
  size_t predicted(size_t i) const;
};

// A metric that the samples do not determine.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
inline double fraction(double part, double of) {
  return of > 0 ? part / of : kUnknown;
}
// Softmax of a row.
std::vector<double> probabilities_of(std::span<const float> row);

struct MetricDef {
  const char* counted = nullptr;  // before a number: "top" of top1, top2 ...
  bool for_classes = false;
  bool for_binary = false;  // targets 0 and 1
  bool for_numbers = false;
  double (*value)(const ScoredOutputs& scored, size_t number);  // number: of `counted`, else 1
};

const MetricDef& metric_def(loom::MetricKind value);  // registry.cpp

}  // namespace loom::core
