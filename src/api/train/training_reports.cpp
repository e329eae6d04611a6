#include "api/train/training_reports.hpp"

#include <chrono>

#include "base/text.hpp"
#include "io/json/json.hpp"
#include "loom/training_options.hpp"

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

std::string recipe_json(const loom::TrainerOptions& options, int64_t epochs, int64_t batch) {
  JsonValue out = JsonValue::object();
  out.add("epochs", JsonValue::integer(epochs));
  out.add("batch", JsonValue::integer(batch));
  const std::vector<OptionInfo> usual = list_options(loom::TrainerOptions()),
                                now = list_options(options);
  for (size_t i = 0; i < now.size(); ++i) {
    const std::string_view flag = now[i].flag.empty() ? now[i].name : now[i].flag;
    const bool always =
        flag == "optimizer" || flag == "rate" || flag == "schedule" || flag == "seed";
    if (always || (now[i].text != usual[i].text && !out.find(flag)))
      out.add(std::string(flag), JsonValue::string(now[i].text));
  }
  return dump_json(out);
}

int64_t steady_ns() {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  const auto of = [](auto time) {
    return duration_cast<nanoseconds>(time.time_since_epoch()).count();
  };
  static const int64_t between =
      of(std::chrono::system_clock::now()) - of(std::chrono::steady_clock::now());
  return of(std::chrono::steady_clock::now()) + between;
}

}  // namespace loom::core
