// Training.
#include "capi/json_text.hpp"
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"
#include "capi/training/observers.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Result<TrainerOptions> trainer_options(const loom_trainer_options* given) {
  LOOM_ASSIGN(const loom_trainer_options from, options_of(given, "loom_trainer_options"));
  LOOM_ASSIGN(TrainerOptions to, read_options(from));
  if (from.engine != nullptr) {
    LOOM_ASSIGN(to.engine, engine_of(from.engine));
  }
  return to;
}

std::string metrics_text(const std::vector<Metric>& metrics) {
  JsonText json;
  json.open('{');
  for (const Metric& m : metrics) json.add(m.name, m.value);
  json.close('}');
  return json.text();
}

// metrics: lent, as long as the epoch is used.
loom_epoch epoch_of(const Epoch& from, const std::string& metrics) {
  loom_epoch to{};
  to.struct_size = sizeof(to);
  to.number = from.number;
  to.train_loss = from.train_loss;
  to.has_validation = from.validation_loss.has_value() ? 1 : 0;
  to.has_validation_accuracy = from.validation_accuracy.has_value() ? 1 : 0;
  to.validation_loss = from.validation_loss.value_or(0);
  to.validation_accuracy = from.validation_accuracy.value_or(0);
  to.rate = from.rate;
  to.gradient_norm = from.gradient_norm;
  to.dropped = from.dropped;
  to.best = from.best ? 1 : 0;
  to.samples_per_second = from.samples_per_second;
  to.validation_metrics = metrics.c_str();
  return to;
}

// observed: to be kept until fit() has returned.
Result<FitOptions> fit_options(const loom_fit_options* given, std::shared_ptr<void>& observed) {
  LOOM_ASSIGN(const loom_fit_options from, options_of(given, "loom_fit_options"));
  LOOM_ASSIGN(FitOptions to, read_options(from));
  to.on_validation = progress_of(from.on_validation, from.user);
  if (from.on_batch != nullptr) {
    to.on_batch = [from](int64_t done, int64_t steps, double loss) {
      return from.on_batch(from.user, done, steps, loss) == 0;
    };
  }
  if (from.on_epoch != nullptr) {
    to.on_epoch = [from](const Epoch& epoch) {
      const std::string metrics = metrics_text(epoch.validation_metrics);
      const loom_epoch seen = epoch_of(epoch, metrics);
      return from.on_epoch(from.user, &seen) == 0;
    };
  }
  LOOM_ASSIGN(observed, observe(from, to));
  return to;
}

std::string ranges_text(const std::vector<RangeReport>& ranges) {
  JsonText json;
  json.open('[');
  for (const RangeReport& range : ranges) {
    json.open('{');
    json.add("name", range.name);
    json.add("plain", range.plain);
    json.add("error", range.error);
    json.add("kept", range.kept);
    json.close('}');
  }
  json.close(']');
  return json.text();
}

loom_step_report report_of(const StepReport& from) {
  loom_step_report to{};
  to.updated = from.updated ? 1 : 0;
  to.loss = from.loss;
  return to;
}

Status give_step(Result<StepReport> done, loom_step_report* out) {
  LOOM_ASSIGN(const StepReport report, std::move(done));
  if (out == nullptr) return {};
  return give_report(out, report_of(report), "loom_step_report");
}

std::optional<double> value_of(const double* number) {
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

Result<Trainer::OwnLoss> own_loss(loom_loss_fn loss, void* user) {
  if (loss == nullptr) return invalid("'loss' is null; give a function");
  return Trainer::OwnLoss([=](const Tensor& outputs, Tensor& gradients) -> Result<double> {
    const loom_tensor y = view_of(outputs), dy = view_of(gradients);
    double value = 0;
    if (loss(user, &y, &dy, &value) != 0)
      return Error{Code::cancelled, "the loss of the caller ended the step", {}};
    return value;
  });
}

loom_evaluation evaluation_of(const Evaluation& from) {
  loom_evaluation to{};
  to.loss = from.loss;
  to.samples = from.samples;
  to.has_accuracy = from.accuracy.has_value() ? 1 : 0;
  to.has_mean_absolute_error = from.mean_absolute_error.has_value() ? 1 : 0;
  to.has_r2 = from.r2.has_value() ? 1 : 0;
  to.accuracy = from.accuracy.value_or(0);
  to.mean_absolute_error = from.mean_absolute_error.value_or(0);
  to.r2 = from.r2.value_or(0);
  return to;
}

void add_classes(JsonText& json, const Evaluation& from) {
  json.open('[', "classes");
  for (const ClassScore& c : from.classes) {
    json.open('{');
    json.add("samples", c.samples);
    json.add("precision", c.precision);
    json.add("recall", c.recall);
    json.add("f1", c.f1);
    json.close('}');
  }
  json.close(']');
  json.open('[', "confusion");
  for (const std::vector<int64_t>& row : from.confusion) {
    json.open('[');
    for (const int64_t count : row) json.add({}, count);
    json.close(']');
  }
  json.close(']');
}

std::string evaluation_text(const Evaluation& from) {
  JsonText json;
  json.open('{');
  json.add("loss", from.loss);
  json.add("samples", from.samples);
  if (from.accuracy) json.add("accuracy", *from.accuracy);
  if (from.mean_absolute_error) json.add("mean_absolute_error", *from.mean_absolute_error);
  if (from.r2) json.add("r2", *from.r2);
  json.open('{', "metrics");
  for (const Metric& m : from.metrics) json.add(m.name, m.value);
  json.close('}');
  add_classes(json, from);
  json.close('}');
  return json.text();
}

Trainer::OnSamples watching(loom_progress_fn progress, void* user) {
  if (progress == nullptr) return {};
  return [=](int64_t done, int64_t total) { return progress(user, done, total) == 0; };
}

Result<Tensor> confusion_of(const Evaluation& from) {
  if (from.confusion.empty()) return Tensor();
  std::vector<int64_t> values;
  for (const std::vector<int64_t>& row : from.confusion)
    values.insert(values.end(), row.begin(), row.end());
  const auto classes = static_cast<int64_t>(from.confusion.size());
  return Tensor::copy(values, {classes, classes});
}

}  // namespace

extern "C" {

loom_status loom_trainer_create(loom_network* network, const loom_trainer_options* options,
                                loom_trainer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const TrainerOptions how, trainer_options(options));
    LOOM_ASSIGN(Trainer trainer, Trainer::create(*object, how));
    return give(out, std::move(trainer));
  });
}

loom_status loom_trainer_fit(loom_trainer* trainer, const loom_dataset* train,
                             const loom_dataset* validation, const loom_fit_options* options,
                             loom_history** out) {
  return guarded([&]() -> Status {
    if (out != nullptr) *out = nullptr;
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* data, object_of(train));
    std::shared_ptr<void> observed;
    LOOM_ASSIGN(const FitOptions how, fit_options(options, observed));
    KeptHistory kept;
    if (validation != nullptr) {
      LOOM_ASSIGN(const Dataset* held_out, object_of(validation));
      LOOM_ASSIGN(kept.history, object->fit(*data, *held_out, how));
    } else {
      LOOM_ASSIGN(kept.history, object->fit(*data, how));
    }
    for (const Epoch& epoch : kept.history.epochs)
      kept.metrics.push_back(metrics_text(epoch.validation_metrics));
    if (out == nullptr) return {};
    return give(out, std::move(kept));
  });
}

loom_status loom_trainer_step(loom_trainer* trainer, const loom_tensor* x, const loom_tensor* y,
                              const double* rate, loom_step_report* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Tensor inputs, tensor_of(x, "x"));
    LOOM_ASSIGN(const Tensor targets, tensor_of(y, "y"));
    return give_step(object->train_step(inputs, targets, value_of(rate)), out);
  });
}

loom_status loom_trainer_step_with(loom_trainer* trainer, const loom_tensor* x, loom_loss_fn loss,
                                   void* user, const double* rate, loom_step_report* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Tensor inputs, tensor_of(x, "x"));
    LOOM_ASSIGN(const Trainer::OwnLoss own, own_loss(loss, user));
    return give_step(object->train_step(inputs, own, value_of(rate)), out);
  });
}

loom_status loom_trainer_step_samples(loom_trainer* trainer, const loom_dataset* batch,
                                      const double* rate, loom_step_report* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* samples, object_of(batch));
    return give_step(object->train_step(*samples, value_of(rate)), out);
  });
}

loom_status loom_trainer_step_samples_with(loom_trainer* trainer, const loom_dataset* batch,
                                           loom_loss_fn loss, void* user, const double* rate,
                                           loom_step_report* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* samples, object_of(batch));
    LOOM_ASSIGN(const Trainer::OwnLoss own, own_loss(loss, user));
    return give_step(object->train_step(*samples, own, value_of(rate)), out);
  });
}

loom_status loom_trainer_bytes(loom_trainer* trainer, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Trainer* object, object_of(trainer));
    *out = object->bytes();
    return {};
  });
}

loom_status loom_trainer_evaluate(loom_trainer* trainer, const loom_dataset* data,
                                  loom_evaluation* out, loom_array** confusion) {
  return loom_trainer_evaluate_watched(trainer, data, nullptr, nullptr, out, confusion);
}

loom_status loom_trainer_evaluate_watched(loom_trainer* trainer, const loom_dataset* data,
                                          loom_progress_fn progress, void* user,
                                          loom_evaluation* out, loom_array** confusion) {
  return guarded([&]() -> Status {
    if (confusion != nullptr) *confusion = nullptr;
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    LOOM_ASSIGN(const Evaluation evaluation,
                object->evaluate(*samples, {}, watching(progress, user)));
    LOOM_TRY(give_report(out, evaluation_of(evaluation), "loom_evaluation"));
    if (confusion == nullptr) return {};
    LOOM_ASSIGN(Tensor counts, confusion_of(evaluation));
    return give(confusion, std::move(counts));
  });
}

loom_status loom_trainer_evaluate_json(loom_trainer* trainer, const loom_dataset* data,
                                       loom_progress_fn progress, void* user, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    LOOM_ASSIGN(const Evaluation evaluation,
                object->evaluate(*samples, {}, watching(progress, user)));
    return give_text(out, evaluation_text(evaluation));
  });
}

loom_status loom_trainer_calibrate(loom_trainer* trainer, const loom_dataset* data,
                                   loom_progress_fn progress, void* user, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    LOOM_ASSIGN(const auto ranges, object->calibrate(*samples, progress_of(progress, user)));
    return give_text(out, ranges_text(ranges));
  });
}

loom_status loom_trainer_save_weights(loom_trainer* trainer, const char* path) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    return object->save_weights(file);
  });
}

loom_status loom_trainer_frozen(const loom_trainer* trainer, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Trainer* object, object_of(trainer));
    LOOM_ASSIGN(*out, object->frozen());
    return {};
  });
}

loom_status loom_trainer_epoch(const loom_trainer* trainer, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Trainer* object, object_of(trainer));
    *out = object->epoch();
    return {};
  });
}

loom_status loom_trainer_weights_hash(loom_trainer* trainer, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Trainer * object, object_of(trainer));
    LOOM_ASSIGN(const std::string hash, object->weights_hash());
    return give_text(out, hash);
  });
}

void loom_trainer_free(loom_trainer* trainer) {
  free_handle(trainer);
}

loom_status loom_history_count(const loom_history* history, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const KeptHistory* object, object_of(history));
    *out = static_cast<int64_t>(object->history.epochs.size());
    return {};
  });
}

loom_status loom_history_epoch(const loom_history* history, int64_t index, loom_epoch* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const KeptHistory* object, object_of(history));
    const std::vector<Epoch>& epochs = object->history.epochs;
    const auto at = static_cast<size_t>(index);
    if (index < 0 || at >= epochs.size()) {
      return Error{Code::out_of_range,
                   "epoch " + std::to_string(index) + " of " + std::to_string(epochs.size()),
                   {}};
    }
    return give_report(out, epoch_of(epochs[at], object->metrics[at]), "loom_epoch");
  });
}

loom_status loom_history_stopped_early(const loom_history* history, int32_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const KeptHistory* object, object_of(history));
    *out = object->history.stopped_early ? 1 : 0;
    return {};
  });
}

void loom_history_free(loom_history* history) {
  free_handle(history);
}

}  // extern "C"
