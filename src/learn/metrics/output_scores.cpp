#include "learn/metrics/output_scores.hpp"

#include <algorithm>

namespace loom::core {
namespace {

double share(int64_t part, int64_t of) {
  return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0.0;
}

}  // namespace

std::vector<ClassMetrics> class_metrics(const Confusion& counts) {
  std::vector<ClassMetrics> out(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    int64_t called = 0;
    for (size_t other = 0; other < counts.size(); ++other) {
      out[c].samples += counts[c][other];
      called += counts[other][c];
    }
    out[c].precision = share(counts[c][c], called);
    out[c].recall = share(counts[c][c], out[c].samples);
    const double sum = out[c].precision + out[c].recall;
    out[c].f1 = sum > 0 ? 2 * out[c].precision * out[c].recall / sum : 0.0;
  }
  return out;
}

void RegressionMetrics::add(std::span<const float> predicted, std::span<const float> targets,
                            double weight) {
  if (!(weight > 0)) return;
  rows_ += weight;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto y = static_cast<double>(targets[i]);
    const double error = y - static_cast<double>(predicted[i]);
    absolute_ += weight * (error < 0 ? -error : error);
    Column& c = columns_[i];
    c.errors += weight * (error * error);
    const double before = y - c.mean;
    c.mean += weight * before / rows_;
    c.away += weight * (before * (y - c.mean));
  }
}

double RegressionMetrics::mean_absolute_error() const {
  const double count = rows_ * static_cast<double>(columns_.size());
  return count > 0 ? absolute_ / count : 0.0;
}

std::optional<double> RegressionMetrics::r2() const {
  double sum = 0;
  for (const Column& c : columns_) {
    if (!(c.away > 0)) return {};
    sum += 1 - c.errors / c.away;
  }
  if (columns_.empty()) return {};
  return sum / static_cast<double>(columns_.size());
}

OutputScores::OutputScores(const Dataset& data, const LossSpec& loss, int64_t width)
    : data_(data), loss_(loss), width_(width), numbers_(static_cast<size_t>(width)) {
  if (!data.has_labels() || !loss.heads.empty() || loss.sequence() || loss.pairs()) return;
  const auto classes = static_cast<size_t>(width);
  confusion_.assign(classes, std::vector<int64_t>(classes));
}

void OutputScores::add(int64_t first, int64_t count, const Tensor& y) {
  const int64_t per_sample = y.rows() / y.shape[0];
  const auto width = static_cast<size_t>(width_);
  for (int64_t r = 0; r < count * per_sample; ++r) {
    const auto row = static_cast<size_t>(first * per_sample + r);
    if (data_.pads(first + r / per_sample, r % per_sample, per_sample)) continue;
    const std::span<const float> outputs(y.f32_row(r), width);
    if (!confusion_.empty()) {
      if (data_.ignores(data_.labels[row])) continue;
      const auto called = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
      ++confusion_[static_cast<size_t>(data_.labels[row])][static_cast<size_t>(called)];
    } else if (!data_.targets.empty()) {
      const auto targets = std::span(data_.targets).subspan(row * width, width);
      const size_t sample = static_cast<size_t>(first + r / per_sample);
      numbers_.add(outputs, targets,
                   data_.weights.empty() ? 1.0 : static_cast<double>(data_.weights[sample]));
      for (size_t i = 0; i < width; ++i)
        right_ += (outputs[i] > 0.0f) == (targets[i] >= 0.5f) ? 1 : 0;
      seen_ += width_;
    }
  }
}

std::optional<double> OutputScores::accuracy() const {
  if (data_.targets.empty() || !loss_.has_binary_targets()) return {};
  return share(right_, seen_);
}

std::optional<double> OutputScores::mean_absolute_error() const {
  if (!numbers()) return {};
  return numbers_.mean_absolute_error();
}

std::optional<double> OutputScores::r2() const {
  return numbers() ? numbers_.r2() : std::nullopt;
}

}  // namespace loom::core
