#include "learn/trainer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.hpp"
#include "grid/init.hpp"
#include "learn/loss/checks.hpp"
#include "learn/loss/ctc_batch.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/rule.hpp"
#include "learn/trainer_impl.hpp"

namespace loom::core {
namespace {

std::vector<int64_t> order_of(int64_t n, bool shuffle, uint64_t seed, int64_t epoch) {
  if (shuffle) return permutation(n, seed, (uint64_t{1} << 48) + static_cast<uint64_t>(epoch));
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// L-BFGS compares gradients of one function at several places: batches of other samples would each
// be another function.
Status check_full_batches(const TrainerSpec& o, int64_t samples) {
  const int64_t steps = (samples + o.batch - 1) / o.batch;
  const loom::OptimizerKind kind = o.step.optimizer.kind;
  if (!optimizer_def(kind).all_samples || o.step.accumulate % steps == 0) return {};
  return invalid(cat(optimizer_name(kind), " needs all ", samples,
                     " samples in every update, but takes a batch of ", o.batch, " times ",
                     o.step.accumulate, "; leave the batch out, or give ", samples));
}

// Adds the losses of the first `rows` rows to `sum`, one after the other over all batches: the sum
// does not depend on how large they are. losses [heads, rows of a batch].
void add_rows(const Tensor& losses, int64_t rows, double& sum) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < losses.rows(); ++h) sum += static_cast<double>(losses.f32_row(h)[r]);
  }
}

}  // namespace

Status Trainer::Impl::make_forward() {
  forward = {};
  Trace trace(ops->compute);
  LOOM_ASSIGN(forward.feedback, carried_feedback(*network, options.step.carry_feedback, *ops));
  LOOM_TRY(record_evaluation(trace, *network, options.step, tensors_of(forward.feedback),
                             forward.tensors));
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), forward.tensors.pins(), *ops, *pool));
  forward.program = std::make_unique<Program>(std::move(program));
  if (!pairs()) return {};
  const Tensor& y = forward.tensors.network.y;
  LOOM_ASSIGN(forward.judge,
              PairJudge::create(options.step.loss, y.rows(), y.cols(), host_ops(*ops), *pool));
  return {};
}

std::vector<int64_t> Trainer::Impl::training_order(const Dataset& data) const {
  if (options.balance) return balanced_order(data, options.seed, progress.epoch);
  return order_of(data.samples, options.shuffle, options.seed, progress.epoch);
}

// Shares of classes take the place of labels.
Status Trainer::Impl::mixing_fits() const {
  if (!augmenter.mixes()) return {};
  const LossSpec& loss = options.step.loss;
  if (!class_weights.empty() || options.balance)
    return invalid("mixup and cutmix go without weights and balance of classes");
  if (labels && (!loss.has_classes() || !loss.heads.empty() || rows_per_sample != 1))
    return invalid("mixup and cutmix of labels need softmax_ce with one row and one head");
  if (rule_def(options.step.rule.kind).end_to_end) return {};
  return invalid("mixup and cutmix need the rule back-propagation");
}

// Every input besides the first is among what the samples have, and nothing else is.
Status Trainer::Impl::more_fit(const Dataset& data) const {
  const std::vector<InputSpec>& input_specs = network->extra_inputs();
  for (const InputSpec& spec : input_specs) {
    const std::string what = cat("the input '", printable(spec.name), "'");
    const ExtraInput* given = data.extra_input(spec.name);
    if (given == nullptr)
      return invalid(
          cat("the samples say nothing of ", what, " of the network; give it, or zeros"));
    if (!spec.batched)
      return unsupported(cat("all samples share ", what, "; trainers give each its own"));
    if (!(given->sample == spec.shape)) {
      return invalid(
          cat(what, " of a sample is ", given->sample.str(), ", must be ", spec.shape.str()));
    }
    if ((spec.ids > 0) != given->values.empty()) {
      return invalid(cat(what, spec.ids > 0 ? " are ids: give integers"
                                            : " are numbers, and the samples have ids"));
    }
    for (size_t i = 0; i < given->ids.size(); ++i) {
      if (given->ids[i] >= 0 && given->ids[i] < spec.ids) continue;
      return make_error(Code::out_of_range, cat(what, ": id ", given->ids[i], " at ", i,
                                                " must be from 0 to ", spec.ids - 1));
    }
  }
  for (const ExtraInput& input : data.more) {
    const auto same = [&](const InputSpec& spec) { return spec.name == input.name; };
    if (std::none_of(input_specs.begin(), input_specs.end(), same))
      return invalid(cat("the network has no further input '", printable(input.name), "'"));
  }
  return {};
}

Status Trainer::Impl::inputs_fit(const Dataset& data) const {
  LOOM_TRY(more_fit(data));
  const int64_t vocab = network->vocab();
  const bool ids = vocab > 0;
  if (ids && data.ids.empty()) {
    return invalid("the network begins with an Embedding, so its inputs must be integers (ids)");
  }
  for (size_t i = 0; ids && i < data.ids.size(); ++i) {
    if (data.ids[i] >= 0 && data.ids[i] < vocab) continue;
    return make_error(Code::out_of_range,
                      cat("id ", data.ids[i], " at ", i, " must be from 0 to ", vocab - 1));
  }
  return {};
}

// Whether label `i` is of a position that is padding.
bool Trainer::Impl::of_padding(const Dataset& data, size_t i) const {
  const int64_t row = static_cast<int64_t>(i) * rows_per_sample / data.labels_per_sample();
  return data.pads(row / rows_per_sample, row % rows_per_sample, rows_per_sample);
}

// Dataset::check() takes a target for each position of a sample for what it looks like; a network
// that predicts something else reads all of it.
Status Trainer::Impl::padding_fits(const Dataset& data) const {
  if (data.lengths.empty() || rows_per_sample == data.sample[0]) return {};
  Dataset whole;
  whole.samples = data.samples;
  whole.sample = data.sample;
  whole.outputs = data.outputs;
  whole.classes = data.classes;
  whole.targets = data.targets;
  whole.labels = data.labels;
  whole.ignored = data.ignored;
  return whole.check_targets();
}

Status Trainer::Impl::fits(const Dataset& data) const {
  LOOM_TRY(data.check());
  LOOM_TRY(inputs_fit(data));
  if (!data.lengths.empty() && !options.step.masked)
    return invalid("this trainer began with whole samples, the dataset has lengths");
  // The recording reads one or the other.
  if (data.has_labels() != labels) {
    return invalid(
        labels ? "this trainer began with class labels, the dataset has numbers"
               : "this trainer began with numbers as targets, the dataset has class labels");
  }
  const int64_t width = predictions_of(*network).last();
  if (sequences()) return check_ctc(data, rows_per_sample, width, options.step.loss.blank);
  if (pairs()) return pair_labels(data).check(options.step.loss);
  if (data.has_labels()) {
    const int64_t heads =
        std::max<int64_t>(static_cast<int64_t>(options.step.loss.heads.size()), 1);
    if (data.labels_per_sample() != rows_per_sample * heads) {
      return invalid(cat("the network predicts ", rows_per_sample * heads,
                         " labels per sample, the dataset has ", data.labels_per_sample()));
    }
    for (size_t i = 0; heads > 1 && i < data.labels.size(); ++i) {
      const int64_t limit = options.step.loss.heads[i % options.step.loss.heads.size()];
      if (data.labels[i] < limit || data.ignores(data.labels[i]) || of_padding(data, i)) continue;
      return make_error(Code::out_of_range,
                        cat("sample ", static_cast<int64_t>(i) / data.labels_per_sample(),
                            ": label ", data.labels[i], " must be from 0 to ", limit - 1));
    }
    LOOM_TRY(padding_fits(data));
    if (heads == 1 && data.classes > width) {
      return invalid(cat("the network ends in ", width, " values, the dataset has ", data.classes,
                         " classes"));
    }
    return {};
  }
  LOOM_TRY(padding_fits(data));
  if (data.outputs != width * rows_per_sample)
    return invalid(cat("the network ends in ", network->output().str(),
                       ", a target of the dataset has ", data.outputs, " values"));
  for (int64_t row = 0; row < data.samples * rows_per_sample; ++row) {
    const int64_t sample = row / rows_per_sample;
    if (data.pads(sample, row % rows_per_sample, rows_per_sample)) continue;
    const auto values = std::span(data.targets)
                            .subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
    LOOM_TRY(check_target(options.step.loss, values, cat("sample ", sample)));
  }
  return {};
}

// One step with the loss of the labels of whole samples; `each`: what a sample counts.
Result<StepResult> Trainer::Impl::sequence_step(const Dataset& data,
                                                const std::vector<int64_t>& order, int64_t first,
                                                int64_t count, float each, double rate) {
  const auto batch =
      std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  std::vector<double> weights;
  for (const int64_t sample : batch)
    weights.push_back(weight_of(data, sample, 0) * static_cast<double>(each));
  return step->run_with_loss(rate, [&](const Tensor& y, const Tensor& dy) -> Result<double> {
    const CtcBatch done = ctc_batch(data, batch, options.step.loss, y, weights, dy, *pool);
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * done.losses[i];
    return sum;
  });
}

// Labels that count: neither ignored nor of padding.
int64_t Trainer::Impl::named_labels(const Dataset& data) const {
  const int64_t heads = data.labels_per_sample() / rows_per_sample;
  int64_t named = 0;
  for (int64_t i = 0; i < std::ssize(data.labels); ++i) {
    const int64_t row = i / heads;
    const bool pads = data.pads(row / rows_per_sample, row % rows_per_sample, rows_per_sample);
    named += pads || data.ignores(data.labels[static_cast<size_t>(i)]) ? 0 : 1;
  }
  return named;
}

// Adds the losses of an evaluation's batch to `loss`; returns how many samples are spelled right.
int64_t Trainer::Impl::add_sequences(const Dataset& data, int64_t first, int64_t count,
                                     double& loss) const {
  std::vector<int64_t> batch(static_cast<size_t>(count));
  std::iota(batch.begin(), batch.end(), first);
  const Tensor& y = forward.tensors.network.y;
  const CtcBatch done = ctc_batch(data, batch, options.step.loss, y, {}, {}, *pool);
  for (int64_t i = 0; i < count; ++i)
    loss += weight_of(data, first + i, 0) * done.losses[static_cast<size_t>(i)];
  return done.right;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::create(const GridSpec& grid, const Dataset& data,
                                const TrainerSpec& options, const Ops& ops, ThreadPool& pool) {
  LOOM_TRY(data.check());
  if (options.batch < 1) return invalid(cat("batch is ", options.batch, ", must be at least 1"));
  LOOM_TRY(check_full_batches(options, data.samples));
  if (data.sample.rank() >= Shape::kMaxRank) {
    return invalid(
        cat("a sample ", data.sample.str(), " has too many axes; at most ", Shape::kMaxRank - 1));
  }
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->ops = &ops;
  impl->pool = &pool;
  impl->labels = data.has_labels();
  LOOM_ASSIGN(impl->augmenter, Augmenter::create(options.augment, data, options.seed));
  if (!data.more.empty() && impl->augmenter.any())
    return unsupported("samples of several inputs are not changed; leave augmentation out");
  impl->options.step.given = !data.more.empty();
  impl->options.step.masked = !data.lengths.empty();
  impl->options.step.class_ids = data.has_labels() && !impl->augmenter.mixes();
  LOOM_ASSIGN(Network network, Network::finalize(grid, data.sample.after(options.batch)));
  impl->network = std::make_unique<Network>(std::move(network));
  impl->rows_per_sample = predictions_of(*impl->network).rows() / options.batch;
  LOOM_TRY(impl->fits(data));
  LOOM_TRY(impl->set_class_weights(data));
  LOOM_TRY(impl->mixing_fits());
  LOOM_TRY(MetricScores::create(options.metrics, data, options.step.loss, 1));
  LOOM_TRY(
      init_params(*impl->network, options.dtype, options.start_seed.value_or(options.seed), pool));
  LOOM_ASSIGN(impl->step, TrainStep::create(*impl->network, impl->options.step, ops, pool));
  LOOM_TRY(impl->make_forward());
  return Trainer(std::move(impl));
}

Result<EpochReport> Trainer::epoch(const Dataset& train, const Dataset& validation,
                                   const OnStep& on_step, const OnSamples& on_validation,
                                   const Pause& pause) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(train));
  if (validation.samples > 0) LOOM_TRY(s.fits(validation));  // before an epoch is lost on it
  if (s.pairs()) LOOM_TRY(s.pair_labels(train).check_pairs(s.options.step.loss));
  const int64_t batch = s.options.batch;
  const int64_t steps = (train.samples + batch - 1) / batch;
  const std::vector<int64_t> order = s.training_order(train);
  LOOM_TRY(s.step->set_present(train.samples - (steps - 1) * batch));  // the last one's
  EpochReport report;
  report.epoch = s.progress.epoch + 1;
  // An epoch that was left in its middle goes on there.
  const EpochPosition from = std::exchange(s.progress.position, {});
  if (from.batch > steps)
    return invalid(cat("the run that goes on has done ", from.batch, " batches of ", steps));
  double sum = from.sum, all = from.counted;
  report.dropped = from.dropped;
  std::vector<double> counted(static_cast<size_t>(from.batch));  // of the batches that were begun
  if (from.batch == 0) LOOM_TRY(s.step->forget());
  // Results come in groups where the device works while the next batches are made ready.
  const int64_t ahead = s.step->ahead();
  int64_t done = from.batch, begun_batches = from.batch;
  bool stopped = false;
  const auto note = [&](const std::vector<StepResult>& results) {
    for (const StepResult& result : results) {
      const double count = counted[static_cast<size_t>(done)];
      const double loss = result.loss * static_cast<double>(s.batches_of_update(done, steps));
      sum += loss * count;
      all += count;
      report.gradient_norm = result.norm;
      if (!result.finite) ++report.dropped;
      ++done;
      stopped = stopped || (on_step && !on_step(done, steps, loss));
    }
  };
  for (int64_t i = from.batch; i < steps && !stopped; ++i) {
    report.learning_rate = s.rate_of(i, steps);
    LOOM_ASSIGN(const BatchBegun begun, s.begin_batch(train, order, i, report.learning_rate));
    counted.push_back(begun.counted);
    begun_batches = i + 1;
    if (begun.result) note({*begun.result});
    add_links(*s.step, report.links);
    const bool pauses =
        pause.save && pause.every > 0 && (i + 1) % pause.every == 0 && i + 1 < steps;
    if ((i + 1) % ahead != 0 && !pauses) continue;
    LOOM_ASSIGN(const std::vector<StepResult> results, pauses ? s.step->finish() : s.step->ready());
    note(results);
    if (pauses && !stopped) LOOM_TRY(s.save_within({i + 1, report.dropped, sum, all}, pause));
  }
  LOOM_ASSIGN(const std::vector<StepResult> results, s.step->finish());
  note(results);
  // The place where a run that stops goes on. After the last batch, only the validation is left.
  const auto stop = [&]() -> Error {
    const EpochPosition here{begun_batches, report.dropped, sum, all};
    const Status saved = pause.save ? s.save_within(here, pause) : Status();
    return saved.ok() ? make_error(Code::cancelled, "training was stopped") : saved.error();
  };
  report.train_loss = all > 0 ? sum / all : 0.0;
  if (begun_batches == from.batch) report.learning_rate = s.rate_of(steps - 1, steps);
  share_links(report.links, std::max<int64_t>(steps - from.batch, 1));
  const int64_t average_from = s.options.step.average.from;
  const bool ends_here = from.batch < steps && begun_batches == steps;
  if (ends_here && average_from > 0 && report.epoch >= average_from) LOOM_TRY(s.step->average());
  if (stopped) return stop();
  if (validation.samples > 0) {
    Result<Evaluation> measured = s.validate(*this, validation, on_validation);
    if (!measured.ok() && measured.error().code == Code::cancelled) return stop();
    if (!measured.ok()) return measured.error();
    report.validation = std::move(*measured);
  }
  s.note(report);
  return report;
}

// The learning rate of batch `i` of an epoch. Schedules count updates, as those of PyTorch do.
double Trainer::Impl::rate_of(int64_t i, int64_t steps) const {
  const int64_t most = options.step.accumulate, updates = (steps + most - 1) / most;
  return learning_rate(options.schedule, options.rate, progress.epoch * updates + i / most,
                       options.epochs * updates, updates, progress.plateau_drops);
}

// The result of batch `i` of an epoch, if it is ready.
Result<BatchBegun> Trainer::Impl::begin_batch(const Dataset& train,
                                              const std::vector<int64_t>& order, int64_t i,
                                              double rate) {
  const int64_t first = i * options.batch, count = std::min(options.batch, train.samples - first);
  LOOM_TRY(fill_training(train, order, first, count));
  const double here = counted(train, order, first, count);
  const int64_t steps = (train.samples + options.batch - 1) / options.batch;
  const float each = share(train, count, here, batches_of_update(i, steps));
  if (i + 1 == steps) step->update_after_next();
  BatchBegun begun{plain(train) ? static_cast<double>(count) : here, {}};
  if (sequences()) {
    LOOM_ASSIGN(begun.result, sequence_step(train, order, first, count, each, rate));
    return begun;
  }
  fill_targets(train, order, first, count, step->targets(), step->weight(), each);
  if (augmenter.mixes()) {
    const Tensor& target = step->targets()[0];
    augmenter.targets(train, order, progress.epoch, first, count,
                      target.shape.count() / options.batch, target.f32());
  }
  LOOM_TRY(step->begin(rate));
  return begun;
}

// Progress that is saved from here on says that this epoch is under way.
Status Trainer::Impl::save_within(const EpochPosition& position, const Pause& pause) {
  progress.position = position;
  progress.updates = step->updates();
  progress.pending = step->pending();
  const Status saved = pause.save();
  progress.position = {};
  return saved;
}

Result<StepResult> Trainer::train_batch(const Dataset& batch, double rate) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(batch));
  if (batch.samples > s.options.batch) {
    return invalid(
        cat(batch.samples, " samples in a batch; this trainer takes at most ", s.options.batch));
  }
  const std::vector<int64_t> order = order_of(batch.samples, false, 0, 0);
  LOOM_TRY(s.fill_inputs(batch, order, 0, batch.samples, s.step->x(), s.step->more()));
  s.step->set_lengths(batch.lengths_of(order, 0, batch.samples));
  LOOM_TRY(s.step->set_present(batch.samples));
  const double counted = s.counted(batch, order, 0, batch.samples);
  const float each = s.share(batch, batch.samples, counted, s.options.step.accumulate);
  StepResult result;
  if (s.sequences()) {
    LOOM_ASSIGN(result, s.sequence_step(batch, order, 0, batch.samples, each, rate));
  } else {
    s.fill_targets(batch, order, 0, batch.samples, s.step->targets(), s.step->weight(), each);
    LOOM_ASSIGN(result, s.step->run(rate));
  }
  result.loss *= s.options.step.accumulate;
  return result;
}

Result<StepResult> Trainer::train_with_loss(const Dataset& batch, double rate,
                                            const TrainStep::GivenLoss& loss) {
  Impl& s = *impl_;
  LOOM_TRY(batch.check_inputs());
  LOOM_TRY(s.inputs_fit(batch));
  if (batch.samples > s.options.batch) {
    return invalid(
        cat(batch.samples, " samples in a batch; this trainer takes at most ", s.options.batch));
  }
  LOOM_ASSIGN(const Tensor x, s.step->custom_loss_x());
  LOOM_TRY(s.step->set_present(batch.samples));
  s.step->set_lengths(batch.lengths_of(order_of(batch.samples, false, 0, 0), 0, batch.samples));
  LOOM_TRY(s.fill_inputs(batch, order_of(batch.samples, false, 0, 0), 0, batch.samples, x,
                         s.step->custom_loss_inputs()));
  return s.step->run_with_loss(rate, loss);
}

// The loss and the metrics that are asked for.
Result<Evaluation> Trainer::Impl::validate(Trainer& trainer, const Dataset& data,
                                           const OnSamples& on_samples) const {
  LOOM_ASSIGN(MetricScores scores, MetricScores::create(options.metrics, data, options.step.loss,
                                                        predictions_of(*network).last()));
  OnOutputs on_outputs;
  if (!options.metrics.empty()) {
    on_outputs = [&](int64_t first, int64_t count, const Tensor& y) {
      scores.add(first, count, y);
    };
  }
  LOOM_ASSIGN(Evaluation result, trainer.evaluate(data, on_outputs, on_samples));
  result.metrics = scores.values();
  return result;
}

// Books the end of an epoch: the best loss so far, plateaus, whether to stop.
void Trainer::Impl::note(EpochReport& report) {
  const double loss = report.validation.has_value() ? report.validation->loss : report.train_loss;
  report.best = progress.epoch == 0 || loss < progress.best_loss;
  if (report.best) {
    progress.best_loss = loss;
    progress.stale = progress.plateau_stale = 0;
  } else {
    ++progress.stale;
    if (++progress.plateau_stale > options.schedule.patience) {
      ++progress.plateau_drops;
      progress.plateau_stale = 0;
    }
  }
  ++progress.epoch;
  progress.updates = step->updates();
  progress.pending = step->pending();
  report.last = progress.epoch >= options.epochs ||
                (options.early_stop > 0 && progress.stale >= options.early_stop);
}

void Trainer::plan(int64_t epochs, int64_t early_stop) {
  impl_->options.epochs = epochs;
  impl_->options.early_stop = early_stop;
}

Result<Evaluation> Trainer::evaluate(const Dataset& data, const OnOutputs& on_outputs,
                                     const OnSamples& on_samples) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(data));
  const int64_t batch = s.options.batch;
  const std::vector<int64_t> order = order_of(data.samples, false, 0, 0);
  const StepTensors& t = s.forward.tensors;
  Evaluation result;
  int64_t right = 0;
  std::vector<float> embeddings;  // of losses that compare them
  LOOM_TRY(s.step->show_average(true));
  LOOM_TRY(s.forward.feedback.forget(*s.ops));
  for (int64_t first = 0; first < data.samples; first += batch) {
    const int64_t count = std::min(batch, data.samples - first);
    LOOM_TRY(s.fill_inputs(data, order, first, count, t.network.x, t.network.more));
    mark_lengths(t.network.mask, t.network.ends, data.lengths_of(order, first, count));
    const bool rows = !s.sequences() && !s.pairs();
    if (rows) s.fill_targets(data, order, first, count, t.targets, t.weight, 1.0f);
    LOOM_TRY(s.forward.program->run());
    if (rows) LOOM_TRY(to_host(*s.ops, {t.row_losses}));
    if (data.has_labels() || on_outputs) LOOM_TRY(to_host(*s.ops, {t.network.y}));
    if (rows) add_rows(t.row_losses, count * s.rows_per_sample, result.loss);
    if (s.pairs()) {
      for (int64_t r = 0; r < count * s.rows_per_sample; ++r) {
        const float* row = t.network.y.f32_row(r);
        embeddings.insert(embeddings.end(), row, row + t.network.y.cols());
      }
    }
    if (s.sequences()) right += s.add_sequences(data, first, count, result.loss);
    if (rows && data.has_labels()) right += s.hits(data, first, count);
    if (on_outputs) on_outputs(first, count, t.network.y);
    if (on_samples && !on_samples(first + count, data.samples))
      return make_error(Code::cancelled, "the evaluation was stopped");
  }
  if (s.pairs()) {
    LOOM_TRY(s.judge(data, embeddings, result));
    return result;
  }
  const double counted = s.counted(data, order, 0, data.samples);
  if (counted > 0) result.loss /= counted;
  if (s.sequences()) {
    result.accuracy = static_cast<double>(right) / static_cast<double>(data.samples);
  } else if (data.has_labels()) {
    result.accuracy = static_cast<double>(right) / static_cast<double>(s.named_labels(data));
  }
  return result;
}

Result<std::vector<InputRange>> Trainer::Impl::observe_ranges(const Dataset& data,
                                                              const OnSamples& on_samples) {
  LOOM_ASSIGN(RangeObserver observer,
              RangeObserver::create(*network, *ops, *pool, options.step.carry_feedback));
  const std::vector<int64_t> order = order_of(data.samples, false, 0, 0);
  for (int64_t first = 0; first < data.samples; first += options.batch) {
    const int64_t count = std::min(options.batch, data.samples - first);
    LOOM_TRY(fill_inputs(data, order, first, count, observer.x()));
    LOOM_TRY(observer.run(count));
    if (on_samples && !on_samples(first + count, data.samples))
      return make_error(Code::cancelled, "calibrating was stopped");
  }
  return observer.ranges();
}

Result<std::vector<ClipReport>> Trainer::calibrate(const Dataset& data,
                                                   const OnSamples& on_samples) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(data));
  if (s.step->has_average())
    return invalid("this trainer averages weights; save the network, and calibrate the file");
  LOOM_ASSIGN(const std::vector<InputRange> ranges, s.observe_ranges(data, on_samples));
  LOOM_TRY(s.step->fetch());
  std::vector<ClipReport> reports;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Param& p = s.network->params()[i];
    if (!p.spec.matrix() || dtype_info(p.tensor.dtype).bits >= 16) continue;
    for (const StateTensor& master : s.step->state()) {
      if (master.name != p.path) continue;
      LOOM_ASSIGN(ClipReport report,
                  clip_rows(master.tensor, p.tensor.dtype, ranges[i], host_ops(*s.ops), *s.pool));
      report.path = p.path;
      reports.push_back(std::move(report));
    }
  }
  LOOM_TRY(s.step->send());
  LOOM_TRY(s.step->refresh_scales());
  return reports;
}

Status Trainer::morph(const Coord& at, DType dtype) {
  LOOM_TRY(impl_->step->morph(at, dtype));
  return impl_->make_forward();
}

Network& Trainer::network() {
  return *impl_->network;
}
TrainStep& Trainer::step() {
  return *impl_->step;
}
int64_t Trainer::bytes() const {
  const Impl& s = *impl_;
  return s.network->param_bytes() + s.step->arena_bytes() + s.step->state_bytes() +
         s.forward.program->arena_bytes();
}
const TrainerProgress& Trainer::progress() const {
  return impl_->progress;
}
Status Trainer::restore(const TrainerProgress& progress) {
  impl_->progress = progress;
  return impl_->step->restored(progress.updates, progress.pending);
}

}  // namespace loom::core
