// Trainer: a core trainer that is created with the first samples, because they determine the loss
// and the normalization.
#include "loom/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/network/mesh_impl.hpp"
#include "api/train/own_loss.hpp"
#include "api/train/trainer_options.hpp"
#include "api/train/training_reports.hpp"
#include "base/text.hpp"
#include "io/files/file.hpp"
#include "learn/loss/loss.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/metrics/output_scores.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "train_io/dataset_files.hpp"
#include "train_io/file_memory.hpp"
#include "train_io/target_scale.hpp"

namespace loom::core {
namespace {

// The first samples of a batch as a tensor that owns them. The last batch is padded.
loom::Tensor copy_of(const Tensor& y, int64_t samples) {
  const int64_t rows = samples * (y.rows() / y.shape[0]);
  loom::Tensor out = loom::Tensor::zeros({rows, y.cols()}).or_exit();
  const std::span<float> values = out.mutable_values<float>().or_exit();
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(y.f32_row(r), y.cols(), values.data() + r * y.cols());
  return out;
}

}  // namespace

}  // namespace loom::core

namespace loom {

using core::cat;
using core::invalid;

// Copies of the parameters during training: masters, gradients, two moments.
constexpr uint64_t kCopies = 4;

struct Trainer::Impl {
  Network network;
  Engine engine;
  TrainerOptions options;
  core::TrainerSpec plan;
  std::optional<core::Trainer> trainer;
  std::optional<core::Normalization> stage;  // of the outputs; training ends before it
  core::RecordedRun run;
  bool ahead = false;      // the network lacks the newest weights
  bool last_step = false;  // of an epoch
  int64_t passed_ns = 0;   // when the previous layer ended, or the batch began
  bool computes = false;   // holds the engine's mutex
  core::ScopedMemoryUse held;

  Impl(const Network& what, Engine on, TrainerOptions requested, core::TrainerSpec how)
      : network(what), engine(std::move(on)), options(std::move(requested)), plan(std::move(how)) {}
  ~Impl();
  struct Turn {
    explicit Turn(Impl& s) : impl(s), lock(s.engine.impl().turn) { impl.computes = true; }
    ~Turn() { impl.computes = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Impl& impl;
    std::lock_guard<std::mutex> lock;
  };
  core::TrainedModel& model() { return network.impl().model; }
  bool are_numbers(const core::Dataset& samples) const;
  Status prepare(const Dataset& data);
  Status create(const core::Dataset& data);
  Status load_weights();
  Status average(bool shown);
  Status sync();
  // `data` in the network's form; `copy` holds it if inputs are normalized.
  Result<const core::Dataset*> prepared(const Dataset& data, core::Dataset& copy);
  Result<History> fit(const Dataset& train, const Dataset* validation, const FitOptions& options);
  Status begin(const core::Dataset& samples, const core::Dataset& held_out,
               const FitOptions& options);
  Status resume(const FitOptions& options);
  void watch_layers(const FitOptions& options);
  void report_pass(const core::LayerEvent& event,
                   const std::function<void(const LayerPass&)>& observer);
  Status keep(const FitOptions& options, const std::string& path,
              const std::function<Status(const std::string&)>& save);
  Status save(const Epoch& done, const FitOptions& options);
  Result<Epoch> epoch(const core::Dataset& train, const core::Dataset& validation,
                      const FitOptions& options);
  bool finished(const FitOptions& options) const;
  Result<StepReport> own_step(const Dataset& batch, const OwnLoss& loss, double rate);
  void record_recipe() {
    model().recipe = core::recipe_json(options, trainer->progress().epoch, plan.batch);
  }
  void trained() {
    ahead = true;
    network.impl().fresh = false;
    network.impl().trained = true;
    model().recipe.clear();
    held.set(trainer->bytes());
  }
};

Trainer::Impl::~Impl() {
  if (trainer) (void)sync();
  network.impl().refresh = nullptr;
}

// Packs the averages, or the weights themselves, under the engine's mutex, which callbacks already
// hold.
Status Trainer::Impl::average(bool shown) {
  if (computes) return trainer->step().show_average(shown);
  const Turn turn(*this);
  return trainer->step().show_average(shown);
}

// Gives the network a copy of the current packed weights.
Status Trainer::Impl::sync() {
  if (!ahead) return {};
  LOOM_TRY(average(true));
  LOOM_TRY(trainer->step().fetch());
  LOOM_ASSIGN(core::Network copy,
              core::clone_network(network.impl().model.network, trainer->network()));
  network.impl().set_weights(std::move(copy));
  ahead = false;
  return {};
}

// Whether integers are numbers, not labels: the network has no room for classes, as files are read.
bool Trainer::Impl::are_numbers(const core::Dataset& samples) const {
  if (!samples.has_labels() || samples.ignored) return false;
  const bool automatic = options.loss == Loss::automatic;
  const bool trained = network.impl().trained;
  const core::LossSpec& spec = automatic && trained ? network.impl().model.loss : plan.step.loss;
  if ((trained || !automatic) && core::loss_def(spec.kind).takes_labels()) return false;
  const auto weights = network.impl().weights();
  if (!weights.ok()) return false;
  const core::Shape output = (*weights)->output();
  return output.count() == samples.labels_per_sample() * output[0];
}

// Decides the loss, class names and normalization from the first samples.
Status Trainer::Impl::prepare(const Dataset& data) {
  if (trainer) return {};
  const core::Dataset& samples = data.impl().data;
  core::TrainedModel& known = model();
  const bool labels = samples.has_labels() && !are_numbers(samples);
  if (options.loss == Loss::automatic) {
    const bool trained = network.impl().trained;
    plan.step.loss.kind = trained ? known.loss.kind : core::default_loss(labels);
    if (trained) core::copy_options(known.loss, plan.step.loss);
    if (trained && options.heads.empty()) plan.step.loss.heads = known.loss.heads;
  }
  if (labels && !core::loss_def(plan.step.loss.kind).takes_labels())
    return core::labels_need_classes();
  if (!samples.has_labels() && samples.targets.empty())
    return invalid("the dataset has inputs alone; training needs labels or targets");
  if (options.normalize != Normalize::as_trained) {
    LOOM_ASSIGN(known.normalization, core::find_normalization(samples, options.normalize));
  }
  if (!data.classes().empty() && !plan.step.loss.pairs()) known.names = data.classes();
  if (data.impl().media) known.media = data.impl().media;
  if (!data.impl().columns.empty()) known.columns = data.impl().columns;
  known.loss = plan.step.loss;
  stage = core::target_scale_of(known.network);
  // Losses of counts or shares take targets as they are.
  const core::LossDef& loss = core::loss_def(known.loss.kind);
  const int64_t targets =
      samples.has_labels() && !labels ? samples.labels_per_sample() : samples.outputs;
  if (targets != std::ssize(stage ? stage->scale : std::vector<float>()) ||
      loss.prediction != core::Prediction::numbers || loss.domain.must != nullptr)
    stage.reset();
  plan.step.before_stage = stage.has_value();
  plan.dtype = known.dtype;
  const bool all = core::optimizer_def(plan.step.optimizer.kind).all_samples;
  if (all && !options.batch) plan.batch = samples.samples;
  return {};
}

Status Trainer::Impl::load_weights() {
  Network::Impl& net = network.impl();
  LOOM_ASSIGN(const std::shared_ptr<const core::Network> weights, net.weights());
  if (net.origin != nullptr) return core::load_weights(*net.origin, *trainer);
  return core::load_weights(core::LoadedSource(net.model, false, weights), *trainer);
}

Status Trainer::Impl::create(const core::Dataset& data) {
  if (trainer) return {};
  Network::Impl& net = network.impl();
  Engine::Impl& impl = engine.impl();
  const std::string where = net.origin != nullptr ? net.origin->path : "";
  LOOM_TRY(core::check_parameters(net.model.network, kCopies, impl.budget(), where));
  plan.augment.shift = net.model.normalization.shift;
  plan.augment.factor = net.model.normalization.scale;
  if (net.fresh) plan.start_seed = net.seed;  // the values from which the network was packed
  LOOM_ASSIGN(trainer,
              core::Trainer::create(net.model.network.grid, data, plan, *impl.ops, impl.pool));
  if (!net.fresh) LOOM_TRY(load_weights());
  net.refresh = [this] { return sync(); };
  held = core::ScopedMemoryUse(impl.memory_tracker, core::MemoryKind::training, trainer->bytes());
  return {};
}

Result<const core::Dataset*> Trainer::Impl::prepared(const Dataset& data, core::Dataset& copy) {
  const core::Dataset& samples = data.impl().data;
  const core::Shape& input = model().network.input;
  const bool same = samples.sample == input;
  if (!same && samples.sample.count() != input.count()) {
    return invalid(cat("a sample of the dataset is ", samples.sample.str(), ", the network takes ",
                       input.str()));
  }
  const bool numbers = are_numbers(samples);
  const bool scales = stage && (numbers || !samples.targets.empty());
  if (same && model().normalization.empty() && !scales && !numbers) return &samples;
  copy = samples;
  copy.sample = input;
  if (numbers) copy.labels_to_targets();
  if (scales) core::standardize_targets(*stage, copy);
  LOOM_TRY(core::normalize(copy, model().normalization));
  return &copy;
}

Result<StepReport> Trainer::Impl::own_step(const Dataset& batch, const OwnLoss& loss, double rate) {
  core::Dataset copy;
  if (!trainer) {
    const bool known =
        options.loss == Loss::automatic && network.impl().trained && model().loss.has_classes();
    const bool labels = (known || options.loss == Loss::cross_entropy) && options.heads.empty() &&
                        model().loss.heads.empty();
    Dataset::Impl made{batch.impl().data, {}, {}, {}, {}};
    LOOM_ASSIGN(const auto weights, network.impl().weights());
    const bool learned = options.loss == Loss::automatic && network.impl().trained;
    const core::LossSpec& spec = learned ? model().loss : plan.step.loss;
    LOOM_TRY(spec.sequence() ? core::add_sequences(spec, made.data)
                             : core::add_placeholders(*weights, labels || spec.pairs(), made.data));
    const Dataset first(std::make_shared<Dataset::Impl>(std::move(made)));
    LOOM_TRY(prepare(first));
    LOOM_ASSIGN(const core::Dataset* samples, prepared(first, copy));
    LOOM_TRY(create(*samples));
  }
  LOOM_ASSIGN(const core::Dataset* samples, prepared(batch, copy));
  Shape shape = core::public_shape(trainer->network().output());
  if (!shape.empty()) shape[0] = samples->samples;
  const Turn turn(*this);
  LOOM_ASSIGN(
      const core::StepResult done,
      trainer->train_with_loss(*samples, rate, [&](const core::Tensor& y, const core::Tensor& dy) {
        return core::ask_own_loss(loss, shape, y, dy);
      }));
  trained();
  return StepReport{done.loss, done.updated};
}

bool Trainer::Impl::finished(const FitOptions& o) const {
  const core::TrainerProgress& at = trainer->progress();
  return at.epoch >= o.epochs || (o.early_stop > 0 && at.stale >= o.early_stop);
}

Status Trainer::Impl::resume(const FitOptions& o) {
  if (o.resume && o.checkpoint.empty()) return invalid("resume needs the name of a checkpoint");
  std::string from;
  int64_t planned = 0;
  if (o.resume &&
      (core::file_exists(o.checkpoint) || core::file_exists(o.checkpoint + ".previous"))) {
    LOOM_ASSIGN(from, core::load_checkpoint(o.checkpoint, model(), *trainer, run));
    trained();
    record_recipe();
    if (run.planned_epochs > 0 && run.planned_epochs != o.epochs) {
      planned = run.planned_epochs;
      engine.impl().log_line(
          LogLevel::warning,
          cat(from, ": the run was planned for ", run.planned_epochs,
              " epochs; from here on the rate follows a new schedule for ", o.epochs));
    }
    if (from != o.checkpoint) {
      engine.impl().log_line(LogLevel::warning,
                             cat(o.checkpoint, ": damaged or absent; going on from ", from));
    }
  }
  if (o.on_begin) o.on_begin(from, trainer->progress().epoch, planned);
  return {};
}

void Trainer::Impl::report_pass(const core::LayerEvent& e,
                                const std::function<void(const LayerPass&)>& observer) {
  LayerPass pass{
      {e.at.z, e.at.y, e.at.x, e.at.l}, std::string(e.kind), e.backward, passed_ns, 0, {}};
  pass.end_ns = core::steady_ns();
  for (int i = 0; i < e.values.shape.rank(); ++i) pass.shape.push_back(e.values.shape[i]);
  observer(pass);
  passed_ns = core::steady_ns();  // excludes the listener's time
}

// Reports every layer's pass to `on_pass`, and statistics of the last step of each epoch to
// `on_layer`.
void Trainer::Impl::watch_layers(const FitOptions& o) {
  trainer->step().observe(
      [this, on_pass = o.on_pass, on_layer = o.on_layer](const core::LayerEvent& e) {
        if (on_pass) report_pass(e, on_pass);
        if (!last_step || !on_layer) return;
        const core::ValueStats s = core::value_stats(e.values);
        on_layer({trainer->progress().epoch + 1,
                  {e.at.z, e.at.y, e.at.x, e.at.l},
                  std::string(e.kind),
                  e.backward,
                  s.mean,
                  s.std,
                  s.min,
                  s.max,
                  s.active,
                  s.total});
      });
}

Status Trainer::Impl::keep(const FitOptions& o, const std::string& path,
                           const std::function<Status(const std::string&)>& save) {
  if (path.empty()) return {};
  return o.keep ? o.keep(path, save) : save(path);
}

Result<Epoch> Trainer::Impl::epoch(const core::Dataset& train, const core::Dataset& validation,
                                   const FitOptions& o) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ahead = true;
  last_step = train.samples <= plan.batch;
  passed_ns = core::steady_ns();
  bool stepped = false;
  const auto on_step = [&](int64_t done, int64_t steps, double loss) {
    stepped = true;
    last_step = done + 1 == steps;
    const bool go_on = !o.on_batch || o.on_batch(done, steps, loss);
    if (o.on_pass) passed_ns = core::steady_ns();
    return go_on;
  };
  Result<core::EpochReport> report = [&] {
    const Turn turn(*this);
    const auto save = [&] {
      return keep(o, o.checkpoint, [this](const std::string& path) {
        return core::save_checkpoint(path, model(), *trainer, run);
      });
    };
    core::Trainer::Pause pause{o.checkpoint_every, {}};
    if (!o.checkpoint.empty()) pause.save = save;
    return trainer->epoch(train, validation, on_step, o.on_validation, pause);
  }();
  if (!report.ok()) {
    if (report.error().code == Code::cancelled && stepped) trained();
    return report.error();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  trained();
  record_recipe();
  if (report->dropped > 0) {
    engine.impl().log_line(LogLevel::warning, cat("epoch ", report->epoch, ": ", report->dropped,
                                                  " updates were not finite, and were dropped"));
  }
  for (const core::LinkReport& link : report->links) {
    if (!o.on_link) break;
    const core::GridNode& cell = trainer->network().cells()[link.cell];
    o.on_link({report->epoch,
               {cell.at.z, cell.at.y, cell.at.x, cell.at.l},
               std::string(cell.node.config.def->name),
               link.budget,
               link.gap,
               link.closed,
               link.cosine,
               link.size});
  }
  run.history.push_back(*report);
  return core::epoch_of(*report, seconds, train.samples);
}

// Writes files after an epoch.
Status Trainer::Impl::save(const Epoch& done, const FitOptions& o) {
  if (done.best) {
    LOOM_TRY(average(true));
    LOOM_TRY(keep(o, o.best, [this](const std::string& path) {
      return core::save_weights(path, model(), *trainer);
    }));
  }
  if (!o.checkpoint.empty()) LOOM_TRY(average(false));
  return keep(o, o.checkpoint, [this](const std::string& path) {
    return core::save_checkpoint(path, model(), *trainer, run);
  });
}

Status Trainer::Impl::begin(const core::Dataset& samples, const core::Dataset& held_out,
                            const FitOptions& o) {
  plan.epochs = o.epochs;
  plan.early_stop = o.early_stop;
  const bool observed = o.on_layer || o.on_pass;
  if (observed && trainer && !plan.step.observed)
    return invalid("on_layer and on_pass must be given to the first fit() of a trainer");
  if (observed) plan.step.observed = true;
  if (o.on_link && trainer && !plan.step.rule.stats)
    return invalid("on_link must be given to the first fit() of a trainer");
  if (o.on_link) plan.step.rule.stats = true;
  LOOM_TRY(create(samples));
  if (plan.step.observed) watch_layers(o);
  trainer->plan(o.epochs, o.early_stop);
  run.options = core::run_options(plan, samples, held_out);
  return resume(o);
}

Result<History> Trainer::Impl::fit(const Dataset& train, const Dataset* validation,
                                   const FitOptions& o) {
  if (o.epochs < 1) return invalid(cat("epochs is ", o.epochs, ", must be at least 1"));
  if (o.checkpoint_every < 0)
    return invalid(cat("checkpoint_every is ", o.checkpoint_every, ", must be 0 or more"));
  LOOM_TRY(prepare(train));
  model().split = train.impl().split;
  core::Dataset train_copy, validation_copy;
  LOOM_ASSIGN(const core::Dataset* samples, prepared(train, train_copy));
  const core::Dataset* held_out = &validation_copy;
  if (validation != nullptr) {
    LOOM_ASSIGN(held_out, prepared(*validation, validation_copy));
  }
  LOOM_TRY(begin(*samples, *held_out, o));
  History history;
  for (const core::EpochReport& r : run.history) history.epochs.push_back(core::epoch_of(r, 0, 0));
  std::optional<core::Network> best;
  while (!finished(o)) {
    LOOM_ASSIGN(const Epoch done, epoch(*samples, *held_out, o));
    history.epochs.push_back(done);
    const bool go_on = !o.on_epoch || o.on_epoch(done);
    if (!std::isfinite(done.train_loss)) {
      return core::make_error(Code::internal, cat("the loss is not finite after epoch ",
                                                  done.number, "; lower rate, or clip gradients"));
    }
    LOOM_TRY(save(done, o));
    if (done.best && o.keep_best) {
      LOOM_TRY(average(true));
      LOOM_TRY(trainer->step().fetch());
      LOOM_ASSIGN(best, core::clone_network(model().network, trainer->network()));
    }
    if (!go_on) return core::make_error(Code::cancelled, "training was stopped");
  }
  history.stopped_early = trainer->progress().epoch < o.epochs;
  if (best) {
    network.impl().set_weights(std::move(*best));
    ahead = false;
  }
  return history;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::create(const Network& network, const TrainerOptions& options) {
  LOOM_TRY(core::check_trainer(options));
  core::TrainerSpec plan = core::options_of(options);
  if (network.impl().refresh)
    return invalid("another trainer of this network is still there; one at a time changes it");
  LOOM_ASSIGN(const auto weights, network.impl().weights());
  LOOM_TRY(core::resolve_rules(plan.step.rules, *weights));
  LOOM_TRY(core::check_step_options(plan.step));
  const Engine engine = options.engine.value_or(network.impl().engine);
  for (const std::string& idle : idle_options(options))
    engine.impl().log_line(LogLevel::warning, idle);
  return Trainer(std::make_unique<Impl>(network, engine, options, std::move(plan)));
}

Result<History> Trainer::fit(const Dataset& train, const FitOptions& options) {
  return impl_->fit(train, nullptr, options);
}

Result<History> Trainer::fit(const Dataset& train, const Dataset& validation,
                             const FitOptions& options) {
  return impl_->fit(train, &validation, options);
}

Result<Evaluation> Trainer::evaluate(const Dataset& data) {
  return evaluate(data, {});
}

Result<Evaluation> Trainer::evaluate(const Dataset& data, const OnOutputs& on_outputs,
                                     const OnSamples& on_samples) {
  Impl& s = *impl_;
  LOOM_TRY(s.prepare(data));
  core::Dataset copy;
  LOOM_ASSIGN(const core::Dataset* samples, s.prepared(data, copy));
  LOOM_TRY(s.create(*samples));
  const core::LossSpec& loss = s.plan.step.loss;
  const core::Dataset& own = s.stage ? data.impl().data : *samples;  // targets in their own unit
  core::OutputScores scores(own, loss, core::predictions_of(s.trainer->network()).last());
  LOOM_ASSIGN(core::MetricScores metrics,
              core::MetricScores::create(s.plan.metrics, own, loss,
                                         core::predictions_of(s.trainer->network()).last()));
  const Trainer::Impl::Turn turn(s);
  LOOM_ASSIGN(const core::Evaluation measured,
              s.trainer->evaluate(
                  *samples,
                  [&](int64_t first, int64_t count, const core::Tensor& y) {
                    if (s.stage) core::apply_target_scale(*s.stage, y);
                    scores.add(first, count, y);
                    metrics.add(first, count, y);
                    if (on_outputs) on_outputs(first, count, core::copy_of(y, count));
                  },
                  on_samples));
  Evaluation out;
  out.loss = measured.loss;
  out.accuracy = measured.accuracy;
  out.samples = samples->samples;
  out.metrics = core::metrics_of(metrics.values());
  core::report(scores, s.model().names, out);
  return out;
}

Result<std::vector<RangeReport>> Trainer::calibrate(const Dataset& data,
                                                    const OnSamples& on_samples) {
  Impl& s = *impl_;
  LOOM_TRY(s.prepare(data));
  core::Dataset copy;
  LOOM_ASSIGN(const core::Dataset* samples, s.prepared(data, copy));
  LOOM_TRY(s.create(*samples));
  const Trainer::Impl::Turn turn(s);
  LOOM_ASSIGN(const std::vector<core::ClipReport> clips,
              s.trainer->calibrate(*samples, on_samples));
  s.ahead = true;
  std::vector<RangeReport> out;
  for (const core::ClipReport& c : clips) out.push_back({c.path, c.plain, c.error, c.kept});
  return out;
}

Result<StepReport> Trainer::train_step(const Tensor& x, const Tensor& y,
                                       std::optional<double> rate) {
  LOOM_ASSIGN(const Dataset batch, Dataset::from_arrays(x, y));
  return train_step(batch, rate);
}

Result<StepReport> Trainer::train_step(const Dataset& batch, std::optional<double> rate) {
  Impl& s = *impl_;
  LOOM_TRY(s.prepare(batch));
  core::Dataset copy;
  LOOM_ASSIGN(const core::Dataset* samples, s.prepared(batch, copy));
  LOOM_TRY(s.create(*samples));
  const Trainer::Impl::Turn turn(s);
  LOOM_ASSIGN(const core::StepResult done,
              s.trainer->train_batch(*samples, rate.value_or(s.options.rate)));
  s.trained();
  return StepReport{done.loss, done.updated};
}

Result<StepReport> Trainer::train_step(const Tensor& x, const OwnLoss& loss,
                                       std::optional<double> rate) {
  LOOM_ASSIGN(const Dataset batch, Dataset::from_arrays(x, {}));
  return train_step(batch, loss, rate);
}

Result<StepReport> Trainer::train_step(const Dataset& batch, const OwnLoss& loss,
                                       std::optional<double> rate) {
  if (!loss) return invalid("there is no loss to train with; give a function");
  return impl_->own_step(batch, loss, rate.value_or(impl_->options.rate));
}

int64_t Trainer::bytes() const {
  return impl_->trainer ? impl_->trainer->bytes() : 0;
}

const Network& Trainer::network() const {
  return impl_->network;
}

Result<int64_t> Trainer::frozen() const {
  LOOM_ASSIGN(const auto weights, impl_->network.impl().weights());
  LOOM_ASSIGN(const std::vector<core::ParamRule> rules,
              core::resolve_rules(impl_->plan.step.rules, *weights));
  int64_t count = 0;
  for (size_t i = 0; i < rules.size(); ++i)
    count += rules[i].frozen ? weights->params()[i].spec.shape.count() : 0;
  return count;
}

int64_t Trainer::epoch() const {
  return impl_->trainer ? impl_->trainer->progress().epoch : 0;
}

Status Trainer::save_weights(const std::string& path) {
  if (!impl_->trainer) return invalid("nothing was trained or evaluated yet");
  LOOM_TRY(impl_->average(true));
  return core::save_weights(path, impl_->model(), *impl_->trainer);
}

Result<std::string> Trainer::weights_hash() {
  if (!impl_->trainer) return invalid("nothing was trained or evaluated yet");
  LOOM_TRY(impl_->average(true));
  return core::hash_weights(*impl_->trainer);
}

}  // namespace loom
