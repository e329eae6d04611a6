// Training.
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Status read_optimizer(const loom_trainer_options& from, Optimizer& to) {
  LOOM_TRY(read_enum(from.optimizer, "optimizer", to.kind));
  to.beta1 = given_if(from.has_beta1, from.beta1);
  to.beta2 = given_if(from.has_beta2, from.beta2);
  to.eps = given_if(from.has_eps, from.eps);
  to.weight_decay = given_if(from.has_weight_decay, from.weight_decay);
  return {};
}

Status read_schedule(const loom_trainer_options& from, Schedule& to) {
  LOOM_ASSIGN(to.kind, enum_of<ScheduleKind>(from.schedule, "schedule"));
  to.floor = from.schedule_floor;
  to.gamma = non_zero(from.schedule_gamma, to.gamma);
  to.power = non_zero(from.schedule_power, to.power);
  to.every = non_zero(from.schedule_every, to.every);
  LOOM_ASSIGN(const auto epochs, list_of(from.milestones, from.milestones_count, "milestones"));
  to.milestones.assign(epochs.begin(), epochs.end());
  to.warmup = from.warmup;
  to.patience = non_zero(from.schedule_patience, to.patience);
  return {};
}

Result<TrainerOptions> trainer_options(const loom_trainer_options* given) {
  LOOM_ASSIGN(const loom_trainer_options from, options_of(given, "loom_trainer_options"));
  TrainerOptions to;
  LOOM_ASSIGN(to.loss, enum_of<Loss>(from.loss, "loss"));
  to.huber_delta = non_zero(from.huber_delta, to.huber_delta);
  to.label_smoothing = from.label_smoothing;
  LOOM_ASSIGN(const auto heads, list_of(from.heads, from.heads_count, "heads"));
  to.heads.assign(heads.begin(), heads.end());
  LOOM_TRY(read_optimizer(from, to.optimizer));
  to.rate = non_zero(from.rate, to.rate);
  LOOM_TRY(read_schedule(from, to.schedule));
  LOOM_ASSIGN(to.clip, enum_of<Clip>(from.clip, "clip"));
  to.clip_limit = non_zero(from.clip_limit, to.clip_limit);
  if (from.batch != 0) to.batch = from.batch;
  to.accumulate = non_zero(from.accumulate, to.accumulate);
  to.shuffle = from.keep_order == 0;
  if (from.has_seed != 0) to.seed = from.seed;
  LOOM_TRY(read_enum(from.normalize, "normalize", to.normalize));
  to.native = from.native_weights != 0;
  to.carry_feedback = from.carry_feedback != 0;
  to.checkpoint_cells = from.checkpoint_cells;
  to.ema = from.ema;
  to.swa_from = from.swa_from;
  to.lookahead = from.lookahead;
  to.lookahead_share = non_zero(from.lookahead_share, to.lookahead_share);
  to.gradient_noise = from.gradient_noise;
  to.gradient_noise_fade = from.gradient_noise_fade;
  to.margin = non_zero(from.margin, to.margin);
  to.temperature = non_zero(from.temperature, to.temperature);
  to.all_triplets = from.all_triplets != 0;
  to.pairs_across = from.pairs_across != 0;
  if (from.engine != nullptr) {
    LOOM_ASSIGN(to.engine, engine_of(from.engine));
  }
  return to;
}

loom_epoch epoch_of(const Epoch& from) {
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
  return to;
}

Result<FitOptions> fit_options(const loom_fit_options* given) {
  LOOM_ASSIGN(const loom_fit_options from, options_of(given, "loom_fit_options"));
  FitOptions to;
  to.epochs = non_zero(from.epochs, to.epochs);
  to.early_stop = from.early_stop;
  to.checkpoint = text_or(from.checkpoint, "");
  to.best = text_or(from.best, "");
  to.resume = from.resume != 0;
  to.keep_best = from.keep_best != 0;
  to.on_validation = progress_of(from.on_validation, from.user);
  if (from.on_batch != nullptr) {
    to.on_batch = [from](int64_t done, int64_t steps, double loss) {
      return from.on_batch(from.user, done, steps, loss) == 0;
    };
  }
  if (from.on_epoch != nullptr) {
    to.on_epoch = [from](const Epoch& epoch) {
      const loom_epoch seen = epoch_of(epoch);
      return from.on_epoch(from.user, &seen) == 0;
    };
  }
  return to;
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
    LOOM_ASSIGN(const FitOptions how, fit_options(options));
    History history;
    if (validation != nullptr) {
      LOOM_ASSIGN(const Dataset* kept_back, object_of(validation));
      LOOM_ASSIGN(history, object->fit(*data, *kept_back, how));
    } else {
      LOOM_ASSIGN(history, object->fit(*data, how));
    }
    if (out == nullptr) return {};
    return give(out, std::move(history));
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
    Trainer::OnSamples watch;
    if (progress != nullptr) {
      watch = [=](int64_t done, int64_t total) { return progress(user, done, total) == 0; };
    }
    LOOM_ASSIGN(const Evaluation evaluation, object->evaluate(*samples, {}, watch));
    LOOM_TRY(give_report(out, evaluation_of(evaluation), "loom_evaluation"));
    if (confusion == nullptr) return {};
    LOOM_ASSIGN(Tensor counts, confusion_of(evaluation));
    return give(confusion, std::move(counts));
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
    LOOM_ASSIGN(const History* object, object_of(history));
    *out = static_cast<int64_t>(object->epochs.size());
    return {};
  });
}

loom_status loom_history_epoch(const loom_history* history, int64_t index, loom_epoch* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const History* object, object_of(history));
    if (index < 0 || static_cast<size_t>(index) >= object->epochs.size()) {
      return Error{
          Code::out_of_range,
          "epoch " + std::to_string(index) + " of " + std::to_string(object->epochs.size()),
          {}};
    }
    return give_report(out, epoch_of(object->epochs[static_cast<size_t>(index)]), "loom_epoch");
  });
}

loom_status loom_history_stopped_early(const loom_history* history, int32_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const History* object, object_of(history));
    *out = object->stopped_early ? 1 : 0;
    return {};
  });
}

void loom_history_free(loom_history* history) {
  free_handle(history);
}

}  // extern "C"
