#include "learn/loss/scores.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/names.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double fraction(double part, double of) {
  return of > 0 ? part / of : kUnknown;
}

double probability(float logit) {
  return 1.0 / (1.0 + dmath::exp(-static_cast<double>(logit)));
}

// softmax of a row.
std::vector<double> probabilities(std::span<const float> row) {
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

// The k of "top3"; 0: another name.
size_t top_of(std::string_view name) {
  size_t k = 0;
  if (!name.starts_with("top")) return 0;
  const auto [end, code] = std::from_chars(name.data() + 3, name.data() + name.size(), k);
  return code == std::errc() && end == name.data() + name.size() ? k : 0;
}

bool for_numbers(std::string_view name) {
  return name == "mae" || name == "r2";
}

}  // namespace

Status check_metrics(const std::vector<std::string>& names) {
  const std::vector<std::string> known = {"accuracy", "top3", "macro_f1", "auc",
                                          "ece",      "bce",  "mae",      "r2"};
  for (const std::string& name : names) {
    if (top_of(name) > 0 || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return unknown_word("metric", name, known);
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
                         ", whose outputs are no classes"));
    if (!loss.heads.empty()) return invalid(cat("metric ", name, " is for one head alone"));
    const bool sides = !data.has_labels() && loss.has_binary_targets();
    const bool of_sides = name == "accuracy" || name == "auc" || name == "ece" || name == "bce";
    const bool fits = data.has_labels() ? !for_numbers(name) && name != "bce"
                      : sides           ? of_sides
                                        : for_numbers(name);
    if (fits) continue;
    return invalid(cat("metric ", name, " does not go with ",
                       data.has_labels() ? "class labels"
                       : sides           ? "targets 0 and 1"
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
    if (classes() && data_->ignores(data_->labels[row])) continue;
    rows_.push_back(row);
    outputs_.insert(outputs_.end(), y.f32_row(r), y.f32_row(r) + width_);
  }
}

std::vector<MetricValue> MetricScores::values() const {
  std::vector<MetricValue> all;
  for (const std::string& name : names_) all.push_back({name, value_of(name)});
  return all;
}

double MetricScores::value_of(const std::string& name) const {
  if (name == "accuracy") return hits(1);
  if (name == "macro_f1") return macro_f1();
  if (name == "auc") return auc();
  if (name == "ece") return calibration_error();
  if (name == "bce") return cross_entropy();
  if (for_numbers(name)) return numbers(name == "r2");
  return hits(top_of(name));
}

// Labels among the k largest outputs, of equal ones the first; of targets 0 and 1 the values on the
// right side.
double MetricScores::hits(size_t k) const {
  const auto width = static_cast<size_t>(width_);
  int64_t right = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const float* row = outputs_.data() + i * width;
    if (!classes()) {
      const float* targets = data_->targets.data() + rows_[i] * width;
      for (size_t c = 0; c < width; ++c) right += (row[c] > 0.0f) == (targets[c] >= 0.5f) ? 1 : 0;
      continue;
    }
    const auto label = static_cast<size_t>(data_->labels[rows_[i]]);
    size_t before = 0;
    for (size_t c = 0; c < width; ++c)
      before += row[c] > row[label] || (row[c] == row[label] && c < label) ? 1 : 0;
    right += before < k ? 1 : 0;
  }
  const size_t of = classes() ? rows_.size() : outputs_.size();
  return fraction(static_cast<double>(right), static_cast<double>(of));
}

// The mean over the classes that a label or an output names.
double MetricScores::macro_f1() const {
  const auto width = static_cast<size_t>(width_);
  Confusion counts(width, std::vector<int64_t>(width));
  std::vector<bool> named(width);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const float* row = outputs_.data() + i * width;
    const auto called = static_cast<size_t>(std::max_element(row, row + width) - row);
    const auto label = static_cast<size_t>(data_->labels[rows_[i]]);
    ++counts[label][called];
    named[label] = named[called] = true;
  }
  double sum = 0, there = 0;
  const std::vector<ClassMetrics> metrics = class_metrics(counts);
  for (size_t c = 0; c < width; ++c) {
    if (!named[c]) continue;
    sum += metrics[c].f1;
    there += 1;
  }
  return fraction(sum, there);
}

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

// Of two classes that of the second; of more the mean over classes, each against the rest; of
// targets 0 and 1 the mean over outputs.
double MetricScores::auc() const {
  const auto width = static_cast<size_t>(width_);
  std::vector<std::vector<double>> scores(width);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const float> row(outputs_.data() + i * width, width);
    const std::vector<double> p = classes() ? probabilities(row) : std::vector<double>();
    for (size_t c = 0; c < width; ++c)
      scores[c].push_back(classes() ? p[c] : static_cast<double>(row[c]));
  }
  double sum = 0, there = 0;
  for (size_t c = classes() && width == 2 ? 1 : 0; c < width; ++c) {
    std::vector<bool> positive;
    for (const size_t row : rows_) {
      positive.push_back(classes() ? data_->labels[row] == static_cast<int32_t>(c)
                                   : data_->targets[row * width + c] >= 0.5f);
    }
    const double area = area_under_roc(scores[c], positive);
    if (std::isnan(area)) continue;
    sum += area;
    there += 1;
  }
  return fraction(sum, there);
}

double expected_calibration_error(std::span<const double> confidences,
                                  const std::vector<bool>& right) {
  constexpr size_t kBins = 15;
  double counts[kBins] = {}, sums[kBins] = {}, hits[kBins] = {};
  for (size_t i = 0; i < confidences.size(); ++i) {
    const double place = std::ceil(confidences[i] * static_cast<double>(kBins)) - 1;
    const auto bin = static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)));
    counts[bin] += 1;
    sums[bin] += confidences[i];
    hits[bin] += right[i] ? 1 : 0;
  }
  double error = 0;
  for (size_t b = 0; b < kBins; ++b) error += std::fabs(hits[b] - sums[b]);
  return fraction(error, static_cast<double>(confidences.size()));
}

double MetricScores::calibration_error() const {
  const auto width = static_cast<size_t>(width_);
  std::vector<double> confidences;
  std::vector<bool> right;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const float> row(outputs_.data() + i * width, width);
    if (classes()) {
      const std::vector<double> p = probabilities(row);
      const auto called = std::max_element(row.begin(), row.end()) - row.begin();
      confidences.push_back(p[static_cast<size_t>(called)]);
      right.push_back(data_->labels[rows_[i]] == static_cast<int32_t>(called));
      continue;
    }
    for (size_t c = 0; c < width; ++c) {
      const double p = probability(row[c]);
      confidences.push_back(std::max(p, 1.0 - p));
      right.push_back((row[c] > 0.0f) == (data_->targets[rows_[i] * width + c] >= 0.5f));
    }
  }
  return expected_calibration_error(confidences, right);
}

// On logits: max(x, 0) - x t + log(1 + e^-|x|).
double MetricScores::cross_entropy() const {
  const auto width = static_cast<size_t>(width_);
  double sum = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto x = static_cast<double>(outputs_[i]);
    const auto t = static_cast<double>(data_->targets[rows_[i / width] * width + i % width]);
    sum += std::max(x, 0.0) - x * t + dmath::log(1.0 + dmath::exp(-std::fabs(x)));
  }
  return fraction(sum, static_cast<double>(outputs_.size()));
}

double MetricScores::numbers(bool r2) const {
  const auto width = static_cast<size_t>(width_);
  RegressionMetrics metrics(width);
  for (size_t i = 0; i < rows_.size(); ++i) {
    metrics.add(std::span(outputs_).subspan(i * width, width),
                std::span(data_->targets).subspan(rows_[i] * width, width));
  }
  if (r2) return metrics.r2().value_or(kUnknown);
  return rows_.empty() ? kUnknown : metrics.mean_absolute_error();
}

}  // namespace loom::core
