#include "learn/trainer.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/text.hpp"
#include "grid/init.hpp"
#include "learn/ctc.hpp"
#include "learn/step_builder.hpp"

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
Status check_full_batches(const TrainerOptions& o, int64_t samples) {
  const int64_t steps = (samples + o.batch - 1) / o.batch;
  if (!o.step.optimizer.lbfgs() || o.step.accumulate % steps == 0) return {};
  return invalid(cat("lbfgs needs all ", samples, " samples in every update, but takes a batch of ",
                     o.batch, " times ", o.step.accumulate, "; leave the batch out, or give ",
                     samples));
}

// Places in a batch tensor, and where values come from.
template <class T>
void copy_rows(const std::vector<T>& from, int64_t samples, const std::vector<int64_t>& order,
               int64_t first, int64_t count, T* to) {
  const int64_t each = static_cast<int64_t>(from.size()) / samples;
  for (int64_t i = 0; i < count; ++i) {
    const T* row = from.data() + order[static_cast<size_t>(first + i)] * each;
    std::copy_n(row, each, to + i * each);
  }
}

// Adds the losses of the first `rows` rows to `sum`, one after the other over all batches: the sum
// does not depend on how large they are. losses [heads, rows of a batch].
void add_rows(const Tensor& losses, int64_t rows, double& sum) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < losses.rows(); ++h) sum += static_cast<double>(losses.f32_row(h)[r]);
  }
}

}  // namespace

// The forward pass and the loss, for evaluation.
struct Forward {
  StepTensors tensors;
  FeedbackMemory feedback;
  std::unique_ptr<Program> program;
};

struct Trainer::Impl {
  TrainerOptions options;
  std::unique_ptr<Network> network;
  std::optional<TrainStep> step;
  Forward forward;
  TrainerProgress progress;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  int64_t rows_per_sample = 1;
  std::vector<float> class_weights;

  bool sequences() const { return options.step.loss.sequence(); }
  // What the loss is a mean over: rows of predictions, or samples.
  int64_t parts() const { return sequences() ? 1 : rows_per_sample; }
  Result<StepResult> sequence_step(const Dataset& data, const std::vector<int64_t>& order,
                                   int64_t first, int64_t count, float each, double rate);
  int64_t add_sequences(const Dataset& data, int64_t first, int64_t count, double& loss) const;
  Status set_class_weights(const Dataset& data);
  bool plain(const Dataset& data) const {
    return data.weights.empty() && !data.ignored && class_weights.empty();
  }
  double weight_of(const Dataset& data, int64_t sample, int64_t row) const;
  double counted(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                 int64_t count) const;
  float share(const Dataset& data, int64_t count, double counted) const;
  std::vector<int64_t> training_order(const Dataset& data) const;
  Status inputs_fit(const Dataset& data) const;
  Status fits(const Dataset& data) const;
  void fill_inputs(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                   int64_t count, const Tensor& x) const;
  void fill_targets(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                    int64_t count, const std::vector<Tensor>& targets, const Tensor& weight,
                    float each) const;
  int64_t hits(const Dataset& data, int64_t first, int64_t count) const;
  Status make_forward();
  Result<std::vector<InputRange>> observe_ranges(const Dataset& data, const OnSamples& on_samples);
  void note(EpochReport& report);
  Result<Evaluation> validate(Trainer& trainer, const Dataset& data,
                              const OnSamples& on_samples) const;
};

Status Trainer::Impl::make_forward() {
  forward = {};
  Trace trace(ops->compute);
  LOOM_ASSIGN(forward.feedback, carried_feedback(*network, options.step.carry_feedback, *ops));
  LOOM_TRY(record_evaluation(trace, *network, options.step, tensors_of(forward.feedback),
                             forward.tensors));
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), forward.tensors.pins(), *ops, *pool));
  forward.program = std::make_unique<Program>(std::move(program));
  return {};
}

Status Trainer::Impl::inputs_fit(const Dataset& data) const {
  const int64_t vocab = network->vocab();
  const bool ids = vocab > 0;
  if (ids && data.ids.empty()) {
    return invalid(
        "the network begins with an Embedding, so its inputs must be whole numbers (ids)");
  }
  for (size_t i = 0; ids && i < data.ids.size(); ++i) {
    if (data.ids[i] >= 0 && data.ids[i] < vocab) continue;
    return make_error(Code::out_of_range,
                      cat("id ", data.ids[i], " at ", i, " must be from 0 to ", vocab - 1));
  }
  return {};
}

Status Trainer::Impl::fits(const Dataset& data) const {
  LOOM_TRY(data.check());
  LOOM_TRY(inputs_fit(data));
  // The recording reads one or the other.
  if (data.has_labels() != options.step.class_ids) {
    return invalid(
        options.step.class_ids
            ? "this trainer began with class labels, the dataset has numbers"
            : "this trainer began with numbers as targets, the dataset has class labels");
  }
  const int64_t width = network->output().last();
  if (sequences()) return check_ctc(data, rows_per_sample, width, options.step.loss.blank);
  if (data.has_labels()) {
    const int64_t heads =
        std::max<int64_t>(static_cast<int64_t>(options.step.loss.heads.size()), 1);
    if (data.labels_per_sample() != rows_per_sample * heads) {
      return invalid(cat("the network predicts ", rows_per_sample * heads,
                         " labels per sample, the dataset has ", data.labels_per_sample()));
    }
    for (size_t i = 0; heads > 1 && i < data.labels.size(); ++i) {
      const int64_t limit = options.step.loss.heads[i % options.step.loss.heads.size()];
      if (data.labels[i] < limit || data.ignores(data.labels[i])) continue;
      return make_error(Code::out_of_range,
                        cat("sample ", static_cast<int64_t>(i) / data.labels_per_sample(),
                            ": label ", data.labels[i], " must be from 0 to ", limit - 1));
    }
    if (heads == 1 && data.classes > width) {
      return invalid(cat("the network ends in ", width, " values, the dataset has ", data.classes,
                         " classes"));
    }
    return {};
  }
  if (data.outputs == width * rows_per_sample) return {};
  return invalid(cat("the network ends in ", network->output().str(),
                     ", a target of the dataset has ", data.outputs, " values"));
}

void Trainer::Impl::fill_inputs(const Dataset& data, const std::vector<int64_t>& order,
                                int64_t first, int64_t count, const Tensor& x) const {
  if (x.dtype == DType::i32) {
    copy_rows(data.ids, data.samples, order, first, count, x.i32());
  } else {
    copy_rows(data.inputs, data.samples, order, first, count, x.f32());
  }
  // Rows beyond the data repeat the first one: real numbers, weight 0.
  const int64_t each = x.shape.count() / x.shape[0];
  for (int64_t i = count; i < x.shape[0]; ++i)
    std::memcpy(x.data + i * each * 4, x.data, static_cast<size_t>(each) * 4);
}

// What a row counts in the loss: its sample, its class, and how many of its heads have a label.
double Trainer::Impl::weight_of(const Dataset& data, int64_t sample, int64_t row) const {
  const double weight =
      data.weights.empty() ? 1.0 : static_cast<double>(data.weights[static_cast<size_t>(sample)]);
  if (!data.has_labels() || sequences()) return weight;
  const auto heads = static_cast<int64_t>(std::max<size_t>(options.step.loss.heads.size(), 1));
  const int64_t at = (sample * rows_per_sample + row) * heads;
  int64_t named = 0;
  for (int64_t h = 0; h < heads; ++h)
    named += data.ignores(data.labels[static_cast<size_t>(at + h)]) ? 0 : 1;
  if (named == 0) return 0.0;
  if (!class_weights.empty()) {
    const auto label = static_cast<size_t>(data.labels[static_cast<size_t>(at)]);
    return weight * static_cast<double>(class_weights[label]);
  }
  return weight;
}

// The sum of that over these samples; where nothing has a weight, how many rows there are.
double Trainer::Impl::counted(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                              int64_t count) const {
  if (plain(data)) return static_cast<double>(count * parts());
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < parts(); ++r)
      sum += weight_of(data, order[static_cast<size_t>(first + i)], r);
  }
  return sum;
}

// What makes a sum of losses their mean.
float Trainer::Impl::share(const Dataset& data, int64_t count, double counted) const {
  const int64_t times = options.step.accumulate;
  if (plain(data)) return 1.0f / static_cast<float>(count * parts() * times);
  return counted > 0 ? static_cast<float>(1.0 / (counted * static_cast<double>(times))) : 0.0f;
}

std::vector<int64_t> Trainer::Impl::training_order(const Dataset& data) const {
  if (options.balance) return balanced_order(data, options.seed, progress.epoch);
  return order_of(data.samples, options.shuffle, options.seed, progress.epoch);
}

Status Trainer::Impl::set_class_weights(const Dataset& data) {
  const bool wanted = options.balanced_weights || !options.class_weights.empty();
  if (!wanted && !options.balance) return {};
  if (sequences() || !data.has_labels() || data.labels_per_sample() != 1) {
    return invalid("weights and balance of classes need one class label per sample");
  }
  const int64_t width = network->output().last();
  class_weights = options.class_weights;
  if (options.balanced_weights) class_weights = loom::core::balanced_weights(data, width);
  if (!wanted || static_cast<int64_t>(class_weights.size()) == width) return {};
  return invalid(
      cat(class_weights.size(), " class weights, must be ", width, ", one for each class"));
}

// `each`: the weight of a row that counts 1; rows beyond the samples weigh 0.
void Trainer::Impl::fill_targets(const Dataset& data, const std::vector<int64_t>& order,
                                 int64_t first, int64_t count, const std::vector<Tensor>& targets,
                                 const Tensor& weight, float each) const {
  for (size_t h = 0; h < targets.size(); ++h) {
    const Tensor& target = targets[h];
    std::fill_n(target.data, plain_bytes(target.dtype, target.shape), std::byte{});
    if (target.dtype != DType::i32) {
      copy_rows(data.targets, data.samples, order, first, count, target.f32());
    } else {
      // Labels lie as [sample][row of the prediction][head].
      const auto heads = static_cast<int64_t>(targets.size());
      for (int64_t i = 0; i < count * rows_per_sample; ++i) {
        const int64_t sample = order[static_cast<size_t>(first + i / rows_per_sample)];
        const int64_t row = sample * rows_per_sample + i % rows_per_sample;
        const int32_t label = data.labels[static_cast<size_t>(row * heads) + h];
        target.i32()[i] = data.ignores(label) ? -1 : label;
      }
    }
  }
  const int64_t rows = count * rows_per_sample;
  for (int64_t r = 0; r < weight.shape.count(); ++r) weight.f32()[r] = r < rows ? each : 0.0f;
  for (int64_t r = 0; r < rows && !plain(data); ++r) {
    const int64_t sample = order[static_cast<size_t>(first + r / rows_per_sample)];
    weight.f32()[r] *= static_cast<float>(weight_of(data, sample, r % rows_per_sample));
  }
}

// Labels of samples [first, first + count) whose value is the first largest of its head.
int64_t Trainer::Impl::hits(const Dataset& data, int64_t first, int64_t count) const {
  const Tensor& y = forward.tensors.network.y;
  const std::vector<int64_t> one = {y.cols()};
  const std::vector<int64_t>& heads =
      options.step.loss.heads.empty() ? one : options.step.loss.heads;
  int64_t right = 0;
  for (int64_t r = 0; r < count * rows_per_sample; ++r) {
    const float* row = y.f32() + r * y.cols();
    for (size_t h = 0; h < heads.size(); ++h) {
      const auto best = std::max_element(row, row + heads[h]) - row;
      const size_t at = static_cast<size_t>(first * rows_per_sample + r) * heads.size() + h;
      if (data.labels[at] == best && !data.ignores(data.labels[at])) ++right;
      row += heads[h];
    }
  }
  return right;
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
  return step->run_given(rate, [&](const Tensor& y, const Tensor& dy) -> Result<double> {
    const CtcBatch done = ctc_batch(data, batch, options.step.loss, y, weights, dy, *pool);
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * done.losses[i];
    return sum;
  });
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
                                const TrainerOptions& options, const Ops& ops, ThreadPool& pool) {
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
  impl->options.step.class_ids = data.has_labels();
  LOOM_ASSIGN(Network network, Network::finalize(grid, data.sample.after(options.batch)));
  impl->network = std::make_unique<Network>(std::move(network));
  impl->rows_per_sample = impl->network->output().rows() / options.batch;
  LOOM_TRY(impl->fits(data));
  LOOM_TRY(impl->set_class_weights(data));
  LOOM_TRY(MetricScores::create(options.metrics, data, options.step.loss, 1));
  LOOM_TRY(
      init_params(*impl->network, options.dtype, options.start_seed.value_or(options.seed), pool));
  LOOM_ASSIGN(impl->step, TrainStep::create(*impl->network, impl->options.step, ops, pool));
  LOOM_TRY(impl->make_forward());
  return Trainer(std::move(impl));
}

Result<EpochReport> Trainer::epoch(const Dataset& train, const Dataset& validation,
                                   const OnStep& on_step, const OnSamples& on_validation) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(train));
  const int64_t batch = s.options.batch;
  const int64_t steps = (train.samples + batch - 1) / batch;
  const std::vector<int64_t> order = s.training_order(train);
  LOOM_TRY(s.step->set_present(train.samples - (steps - 1) * batch));  // the last one's
  EpochReport report;
  report.epoch = s.progress.epoch + 1;
  double sum = 0, all = 0;
  std::vector<double> counted;  // of the batches that were begun
  LOOM_TRY(s.step->forget());
  // Results come in groups where the device works while the next batches are made ready.
  const int64_t ahead = s.step->ahead();
  int64_t done = 0;
  const auto note = [&](const std::vector<StepResult>& results) -> Status {
    for (const StepResult& result : results) {
      const double count = counted[static_cast<size_t>(done)];
      const double loss = result.loss * s.options.step.accumulate;
      sum += loss * count;
      all += count;
      report.gradient_norm = result.norm;
      if (!result.finite) ++report.dropped;
      ++done;
      if (on_step && !on_step(done, steps, loss)) {
        LOOM_TRY(s.step->finish());  // what runs is nobody's later
        return make_error(Code::cancelled, "training was stopped");
      }
    }
    return {};
  };
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t first = i * batch, count = std::min(batch, train.samples - first);
    s.fill_inputs(train, order, first, count, s.step->x());
    LOOM_TRY(s.step->set_present(count));
    const double here = s.counted(train, order, first, count);
    counted.push_back(s.plain(train) ? static_cast<double>(count) : here);
    const float each = s.share(train, count, here);
    report.learning_rate = learning_rate(s.options.schedule, s.progress.epoch * steps + i,
                                         s.options.epochs * steps, steps, s.progress.plateau_drops);
    if (s.sequences()) {
      LOOM_ASSIGN(const StepResult result,
                  s.sequence_step(train, order, first, count, each, report.learning_rate));
      LOOM_TRY(note({result}));
      continue;
    }
    s.fill_targets(train, order, first, count, s.step->targets(), s.step->weight(), each);
    LOOM_TRY(s.step->begin(report.learning_rate));
    add_links(*s.step, report.links);
    if ((i + 1) % ahead != 0) continue;
    LOOM_ASSIGN(const std::vector<StepResult> results, s.step->ready());
    LOOM_TRY(note(results));
  }
  LOOM_ASSIGN(const std::vector<StepResult> results, s.step->finish());
  LOOM_TRY(note(results));
  report.train_loss = all > 0 ? sum / all : 0.0;
  share_links(report.links, steps);
  const int64_t from = s.options.step.average.from;
  if (from > 0 && report.epoch >= from) LOOM_TRY(s.step->average());
  if (validation.samples > 0) {
    LOOM_ASSIGN(report.validation, s.validate(*this, validation, on_validation));
  }
  s.note(report);
  return report;
}

Result<StepResult> Trainer::train_batch(const Dataset& batch, double rate) {
  Impl& s = *impl_;
  LOOM_TRY(s.fits(batch));
  if (batch.samples > s.options.batch) {
    return invalid(
        cat(batch.samples, " samples in a batch; this trainer takes at most ", s.options.batch));
  }
  const std::vector<int64_t> order = order_of(batch.samples, false, 0, 0);
  s.fill_inputs(batch, order, 0, batch.samples, s.step->x());
  LOOM_TRY(s.step->set_present(batch.samples));
  const double counted = s.counted(batch, order, 0, batch.samples);
  const float each = s.share(batch, batch.samples, counted);
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

Result<StepResult> Trainer::train_given(const Dataset& batch, double rate,
                                        const TrainStep::GivenLoss& loss) {
  Impl& s = *impl_;
  LOOM_TRY(batch.check_inputs());
  LOOM_TRY(s.inputs_fit(batch));
  if (batch.samples > s.options.batch) {
    return invalid(
        cat(batch.samples, " samples in a batch; this trainer takes at most ", s.options.batch));
  }
  LOOM_ASSIGN(const Tensor x, s.step->given_x());
  LOOM_TRY(s.step->set_present(batch.samples));
  s.fill_inputs(batch, order_of(batch.samples, false, 0, 0), 0, batch.samples, x);
  return s.step->run_given(rate, loss);
}

// The loss and the metrics that are asked for.
Result<Evaluation> Trainer::Impl::validate(Trainer& trainer, const Dataset& data,
                                           const OnSamples& on_samples) const {
  LOOM_ASSIGN(MetricScores scores, MetricScores::create(options.metrics, data, options.step.loss,
                                                        network->output().last()));
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
  LOOM_TRY(s.step->show_average(true));
  LOOM_TRY(s.forward.feedback.forget(*s.ops));
  for (int64_t first = 0; first < data.samples; first += batch) {
    const int64_t count = std::min(batch, data.samples - first);
    s.fill_inputs(data, order, first, count, t.network.x);
    const bool rows = !s.sequences();
    if (rows) s.fill_targets(data, order, first, count, t.targets, t.weight, 1.0f);
    LOOM_TRY(s.forward.program->run());
    if (rows) LOOM_TRY(to_host(*s.ops, {t.row_losses}));
    if (data.has_labels() || on_outputs) LOOM_TRY(to_host(*s.ops, {t.network.y}));
    if (rows) add_rows(t.row_losses, count * s.rows_per_sample, result.loss);
    if (!rows) right += s.add_sequences(data, first, count, result.loss);
    if (rows && data.has_labels()) right += s.hits(data, first, count);
    if (on_outputs) on_outputs(first, count, t.network.y);
    if (on_samples && !on_samples(first + count, data.samples))
      return make_error(Code::cancelled, "the evaluation was stopped");
  }
  const double counted = s.counted(data, order, 0, data.samples);
  if (counted > 0) result.loss /= counted;
  if (s.sequences()) {
    result.accuracy = static_cast<double>(right) / static_cast<double>(data.samples);
  } else if (data.has_labels()) {
    const auto left_out = std::count_if(data.labels.begin(), data.labels.end(),
                                        [&](int32_t label) { return data.ignores(label); });
    const auto named = static_cast<int64_t>(data.labels.size()) - left_out;
    result.accuracy = static_cast<double>(right) / static_cast<double>(named);
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
    fill_inputs(data, order, first, count, observer.x());
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
