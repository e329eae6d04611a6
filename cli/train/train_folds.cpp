#include "train_folds.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"

namespace loom::cli {
namespace {

// One number of every fold: "validation", "accuracy", a metric.
struct Column {
  std::string name;
  std::vector<double> values;

  double mean() const {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / static_cast<double>(values.size());
  }
  // The standard deviation of a sample: the squares are divided by n - 1.
  double deviation() const {
    double sum = 0;
    for (const double v : values) sum += (v - mean()) * (v - mean());
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
};

struct Fold {
  Epoch last;
  int64_t train = 0, validate = 0;
  std::string hash;
};

std::vector<Column> columns_of(const std::vector<Fold>& folds) {
  std::vector<Column> columns = {{"loss", {}}, {"validation", {}}};
  if (folds[0].last.validation_accuracy) columns.push_back({"accuracy", {}});
  for (const Metric& m : folds[0].last.validation_metrics) columns.push_back({m.name, {}});
  for (const Fold& fold : folds) {
    size_t at = 0;
    columns[at++].values.push_back(fold.last.train_loss);
    columns[at++].values.push_back(fold.last.validation_loss.value_or(0));
    if (fold.last.validation_accuracy)
      columns[at++].values.push_back(*fold.last.validation_accuracy);
    for (const Metric& m : fold.last.validation_metrics) columns[at++].values.push_back(m.value);
  }
  return columns;
}

class Folds {
 public:
  Folds(const TrainFlags& f, const Engine& engine)
      : f_(f), engine_(engine), bar_("training", "samples", f.quiet) {}

  Status run();
  Status saved() const { return keeper_.finish(); }
  void print() const;

 private:
  Result<Fold> train(int64_t number, const Dataset& data);
  FitOptions callbacks(int64_t number, int64_t samples);
  void print_json(const std::vector<Column>& columns) const;

  const TrainFlags& f_;
  const Engine& engine_;
  Progress bar_;
  Keeper keeper_;
  std::vector<Fold> folds_;
};

FitOptions Folds::callbacks(int64_t number, int64_t samples) {
  FitOptions o = f_.run;
  o.best = fold_name(f_.run.best, number);
  const int64_t batch = f_.batch();
  const auto epoch = std::make_shared<int64_t>(0);
  o.on_batch = [this, batch, samples, epoch](int64_t done, int64_t, double) {
    bar_.update(*epoch * samples + std::min(done * batch, samples), f_.run.epochs * samples);
    return !interrupted();
  };
  o.on_validation = [](int64_t, int64_t) { return !interrupted(); };
  o.on_epoch = [epoch](const Epoch&) {
    ++*epoch;
    return true;
  };
  o.keep = [this](const std::string& path, const Keeper::Save& save) {
    keeper_.save(path, save);
    return Status();
  };
  return o;
}

// Each begins with the weights that one run would begin with.
Result<Fold> Folds::train(int64_t number, const Dataset& data) {
  LOOM_ASSIGN(const TrainerOptions options, f_.options());
  LOOM_ASSIGN(Network network, f_.open(engine_));
  LOOM_ASSIGN(const Dataset::Parts parts, data.fold(number, f_.folds, {f_.seed, options.shuffle}));
  LOOM_ASSIGN(network, f_.scaled(std::move(network), parts.first, engine_));
  LOOM_ASSIGN(Trainer trainer, Trainer::create(network, options));
  bar_.set_label(fmt::format("fold {}/{}", number + 1, f_.folds));
  LOOM_ASSIGN(const History history,
              trainer.fit(parts.first, parts.second, callbacks(number + 1, parts.first.samples())));
  bar_.finish();
  const std::string output = fold_name(f_.output, number + 1);
  if (!output.empty())
    keeper_.save(output, [&](const std::string& path) { return trainer.save_weights(path); });
  LOOM_ASSIGN(std::string hash, trainer.weights_hash());
  return Fold{history.epochs.back(), parts.first.samples(), parts.second.samples(),
              std::move(hash)};
}

Status Folds::run() {
  LOOM_ASSIGN(const Network network, f_.open(engine_));
  LOOM_ASSIGN(const DatasetOptions how, f_.reading(f_.data, network.info()));
  LOOM_ASSIGN(const Dataset data, read_samples(f_.data.path, network, how));
  LOOM_TRY(f_.check_classes(network.info(), data));
  for (size_t i = 0; i < data.notes().size() && !f_.quiet; ++i) note(data.notes()[i]);
  for (int64_t i = 0; i < f_.folds; ++i) {
    LOOM_ASSIGN(Fold fold, train(i, data));
    folds_.push_back(std::move(fold));
  }
  keeper_.begin_end();
  return {};
}

void Folds::print() const {
  const std::vector<Column> columns = columns_of(folds_);
  if (f_.json) return print_json(columns);
  std::string head = fmt::format("{:<6}{:>9}{:>10}{:>8}", "fold", "train", "validate", "epochs");
  for (const Column& c : columns) head += fmt::format("  {:>10}", c.name);
  write_line(head);
  for (size_t i = 0; i < folds_.size(); ++i) {
    const Fold& fold = folds_[i];
    std::string line =
        fmt::format("{:<6}{:>9}{:>10}{:>8}", i + 1, fold.train, fold.validate, fold.last.number);
    for (const Column& c : columns) line += fmt::format("  {:>10.5f}", c.values[i]);
    write_line(line);
  }
  std::string mean = fmt::format("{:<33}", "mean"), deviation = fmt::format("{:<33}", "std");
  for (const Column& c : columns) {
    mean += fmt::format("  {:>10.5f}", c.mean());
    deviation += fmt::format("  {:>10.5f}", c.deviation());
  }
  write_line(mean);
  write_line(deviation);
}

void Folds::print_json(const std::vector<Column>& columns) const {
  Json all = Json::array(), means = Json::object(), deviations = Json::object();
  for (size_t i = 0; i < folds_.size(); ++i) {
    JsonObject one;
    one.set("fold", static_cast<int64_t>(i + 1))
        .set("train_samples", folds_[i].train)
        .set("validation_samples", folds_[i].validate)
        .set("epochs", folds_[i].last.number);
    for (const Column& c : columns) one.set(c.name, c.values[i]);
    one.set("weights_hash", folds_[i].hash);
    all.push(one.value());
  }
  for (const Column& c : columns) {
    means.add(c.name, Json::real(c.mean()));
    deviations.add(c.name, Json::real(c.deviation()));
  }
  JsonObject()
      .set("folds", all)
      .set("mean", means)
      .set("std", deviations)
      .set("seed", static_cast<int64_t>(f_.seed))
      .print();
}

}  // namespace

std::string fold_name(const std::string& path, int64_t fold) {
  if (path.empty()) return path;
  const size_t slash = path.find_last_of('/');
  const size_t dot = path.find_last_of('.');
  const bool ending = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const size_t end = ending ? dot : path.size();
  return fmt::format("{}.fold{}{}", path.substr(0, end), fold, path.substr(end));
}

int train_in_folds(const TrainFlags& f, const Engine& engine) {
  const Result<TrainerOptions> options = f.options();
  if (!options.ok()) return fail(options.error());
  for (const std::string& idle : idle_options(*options)) note(idle);
  Folds folds(f, engine);
  const Status trained = folds.run();
  if (!trained.ok()) return fail(trained.error());
  folds.print();
  const Status saved = folds.saved();
  return saved.ok() ? kDone : fail(saved.error());
}

}  // namespace loom::cli
