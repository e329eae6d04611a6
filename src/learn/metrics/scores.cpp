#include "learn/metrics/scores.hpp"

#include <algorithm>
#include <charconv>

#include "base/names.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {

namespace {

// A metric, and the number in its name: the 3 of "top3", else 1.
struct NamedMetric {
  const MetricDef* def = nullptr;  // null: no metric has the name
  size_t number = 0;
};

// The 3 of "top3", or 0 for another name.
size_t number_of(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return 0;
  size_t number = 0;
  const char* const last = name.data() + name.size();
  const auto [end, code] = std::from_chars(name.data() + prefix.size(), last, number);
  return code == std::errc() && end == last ? number : 0;
}

// Every name, in the order of messages.
std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (uint8_t i = 0; metric_name(static_cast<MetricKind>(i)) != "unknown"; ++i)
    names.emplace_back(metric_name(static_cast<MetricKind>(i)));
  return names;
}

NamedMetric find_metric(std::string_view name) {
  const std::vector<std::string> names = metric_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const MetricDef& def = metric_def(static_cast<MetricKind>(i));
    if (def.counted == nullptr && name == names[i]) return {&def, 1};
    const size_t number = def.counted != nullptr ? number_of(def.counted, name) : 0;
    if (number > 0) return {&def, number};
  }
  return {};
}

}  // namespace

size_t ScoredOutputs::predicted(size_t i) const {
  const std::span<const float> values = row(i);
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::vector<double> probabilities_of(std::span<const float> row) {
  const auto largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
  std::vector<double> p;
  double sum = 0;
  for (const float x : row) {
    p.push_back(dmath::exp(static_cast<double>(x) - largest));
    sum += p.back();
  }
  for (double& v : p) v /= sum;
  return p;
}

Status check_metrics(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (find_metric(name).def == nullptr) return unknown_word("metric", name, metric_names());
  }
  return {};
}

Result<MetricScores> MetricScores::create(const std::vector<std::string>& names,
                                          const Dataset& data, const LossSpec& loss,
                                          int64_t width) {
  LOOM_TRY(check_metrics(names));
  MetricScores scores(data, width);
  scores.names_ = names;
  for (const std::string& name : names) {
    if (loss.sequence()) return invalid(cat("metric ", name, " is not for ctc"));
    if (loss.pairs())
      return invalid(cat("metric ", name, " is not for ", loss_name(loss.kind),
                         ", whose outputs are not classes"));
    if (!loss.heads.empty()) return invalid(cat("metric ", name, " is for one head alone"));
    const MetricDef& metric = *find_metric(name).def;
    const bool binary = !data.has_labels() && loss.has_binary_targets();
    const bool fits = data.has_labels() ? metric.for_classes
                      : binary          ? metric.for_binary
                                        : metric.for_numbers;
    if (fits) continue;
    return invalid(cat("metric ", name, " does not go with ",
                       data.has_labels() ? "class labels"
                       : binary          ? "targets 0 and 1"
                                         : "numbers"));
  }
  return scores;
}

void MetricScores::add(int64_t first, int64_t count, const Tensor& y) {
  if (names_.empty()) return;
  const int64_t per_sample = y.rows() / y.shape[0];
  for (int64_t r = 0; r < count * per_sample; ++r) {
    const auto row = static_cast<size_t>(first * per_sample + r);
    if (data_->pads(first + r / per_sample, r % per_sample, per_sample)) continue;
    if (data_->has_labels() && data_->ignores(data_->labels[row])) continue;
    rows_.push_back(row);
    outputs_.insert(outputs_.end(), y.f32_row(r), y.f32_row(r) + width_);
  }
}

std::vector<MetricValue> MetricScores::values() const {
  const ScoredOutputs scored{*data_, static_cast<size_t>(width_), rows_, outputs_};
  std::vector<MetricValue> all;
  for (const std::string& name : names_) {
    const NamedMetric metric = find_metric(name);
    all.push_back({name, metric.def->value(scored, metric.number)});
  }
  return all;
}

}  // namespace loom::core
