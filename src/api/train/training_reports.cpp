#include "api/train/training_reports.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

std::string class_name_of(const std::vector<std::string>& names, size_t index) {
  return index < names.size() ? names[index] : cat(static_cast<int64_t>(index));
}

}  // namespace

void report(const OutputScores& scores, const std::vector<std::string>& names,
            loom::Evaluation& out) {
  const std::vector<ClassMetrics> metrics = class_metrics(scores.confusion());
  for (size_t c = 0; c < metrics.size(); ++c) {
    out.classes.push_back({class_name_of(names, c), metrics[c].samples, metrics[c].precision,
                           metrics[c].recall, metrics[c].f1});
  }
  out.confusion = scores.confusion();
  if (!out.accuracy) out.accuracy = scores.accuracy();
  out.mean_absolute_error = scores.mean_absolute_error();
  out.r2 = scores.r2();
}

std::vector<Metric> metrics_of(const std::vector<MetricValue>& values) {
  std::vector<Metric> all;
  for (const MetricValue& v : values) all.push_back({v.name, v.value});
  return all;
}

loom::Epoch epoch_of(const EpochReport& r, double seconds, int64_t samples) {
  loom::Epoch e;
  e.number = r.epoch;
  e.train_loss = r.train_loss;
  if (r.validation) {
    e.validation_loss = r.validation->loss;
    e.validation_accuracy = r.validation->accuracy;
    e.validation_metrics = metrics_of(r.validation->metrics);
  }
  e.rate = r.learning_rate;
  e.gradient_norm = r.gradient_norm;
  e.dropped = r.dropped;
  e.best = r.best;
  if (seconds > 0) e.samples_per_second = static_cast<double>(samples) / seconds;
  return e;
}

}  // namespace loom::core
