#include "evolve/networks/darts.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "learn/step/hyper.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kTrainOrder = uint64_t{1} << 60, kHeldOrder = uint64_t{3} << 60;

Tensor vector_over(std::vector<float>& values) {
  Tensor t;
  t.shape = Shape{static_cast<int64_t>(values.size())};
  t.row_stride = t.shape[0];
  t.data = reinterpret_cast<std::byte*>(values.data());
  return t;
}

bool draws_numbers(const LayerConfig& c) {
  if (c.disabled) return false;
  if (c.def->kind == LayerKind::dropout) return true;
  return std::ranges::any_of(c.children, draws_numbers);
}

Optimizer alpha_optimizer(const DartsSpec& spec) {
  return resolved({.kind = loom::OptimizerKind::adam,
                   .beta1 = 0.5f,
                   .weight_decay = static_cast<float>(spec.alpha_decay)});
}

TrainerSpec weight_options(const DartsSpec& spec, const Dataset& train) {
  TrainerSpec o;
  o.step.loss.kind = default_loss(train.has_labels());
  o.step.class_ids = train.has_labels();
  o.step.seed = o.seed = spec.seed;
  o.step.optimizer.kind = loom::OptimizerKind::momentum;
  o.step.optimizer.weight_decay = static_cast<float>(spec.decay);
  if (spec.clip > 0) o.step.clip = {Clip::norm, static_cast<float>(spec.clip)};
  o.epochs = spec.epochs;
  o.batch = spec.batch;
  return o;
}

// The samples of batch `step` in an endless sequence: pass after pass in new orders, only complete
// batches.
std::vector<int64_t> batch_rows(int64_t samples, int64_t batch, int64_t step, uint64_t seed,
                                uint64_t stream) {
  const int64_t each = samples / batch;
  const auto pass = static_cast<uint64_t>(step / each);
  const std::vector<int64_t> order = permutation(samples, seed, stream + pass);
  const auto first = order.begin() + step % each * batch;
  return {first, first + batch};
}

}  // namespace

Status check_darts(const DartsSpec& s) {
  if (s.order != 1 && s.order != 2) return invalid(cat("order is ", s.order, ", must be 1 or 2"));
  if (s.epochs < 1 || s.batch < 1) return invalid("epochs and batch must be at least 1");
  const std::pair<std::string_view, double> all[] = {
      {"rate", s.rate}, {"least_rate", s.min_rate},   {"decay", s.decay},
      {"clip", s.clip}, {"alpha_rate", s.alpha_rate}, {"alpha_decay", s.alpha_decay}};
  for (const auto& [name, value] : all) {
    if (!(value >= 0) || !std::isfinite(value))
      return invalid(cat(name, " is ", value, ", must be a number of at least 0"));
  }
  return {};
}

struct Darts::Impl {
  // A weight tensor: its memory in the search and in the probe, and the probe's gradient. Vectors
  // share memory in both.
  struct Weight {
    Tensor own, probe, gradient;
    std::vector<float> kept, direction;
    size_t count() const { return static_cast<size_t>(own.shape.count()); }
  };

  struct Alpha {
    Tensor value, gradient;                  // gradient: of the last run of the probe
    std::vector<float> step_gradient, m, v;  // wanted: the gradient to step by
  };

  DartsSpec spec;
  GridGenome genome;
  Dataset train, held;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  std::optional<Trainer> trainer;
  std::optional<TrainStep> probe;  // gradients of everything, and no update
  std::vector<Weight> weights;
  std::vector<Tensor> buffers;
  std::vector<std::vector<float>> saved_buffers;
  std::vector<Alpha> alphas;
  HyperNumbers hyper;
  std::vector<DartsEpoch> history;
  int64_t steps = 0;

  Status begin();
  Status collect();
  Status run(const Dataset& batch);
  void clear_gradients();
  void keep();
  Status set_weights(float by);
  Status put_back();
  Status first_order(const Dataset& held_batch);
  Status second_order(const Dataset& train_batch, const Dataset& held_batch, double rate);
  Status step_alpha();
  int64_t steps_per_epoch() const { return train.samples / spec.batch; }
};

// Trainer and probe on one network. The trainer holds alpha still, and so in its state.
Status Darts::Impl::begin() {
  LOOM_ASSIGN(const NetworkSpec described, genome.spec());
  LOOM_ASSIGN(const Network names, genome.finalized(spec.batch));
  TrainerSpec options = weight_options(spec, train);
  TrainStepOptions probing = options.step;
  probing.optimizer = {};
  probing.optimizer.kind = loom::OptimizerKind::sgd;
  probing.clip = {};
  probing.accumulate = 1 << 30;
  for (const MixedCell& cell : mixed_cells(genome)) {
    const std::string path = cat(Coord{0, 0, static_cast<int64_t>(cell.cell), 0}.str(), "/alpha");
    options.step.rules.freeze.push_back(path);
  }
  for (const Param& p : names.params()) {
    const bool alpha = std::ranges::count(options.step.rules.freeze, p.path) > 0;
    if (spec.order == 1 && !alpha && p.spec.trained) probing.rules.freeze.push_back(p.path);
  }
  LOOM_ASSIGN(trainer, Trainer::create(described.grid, train, options, *ops, *pool));
  for (const StateTensor& state : trainer->step().state()) {
    const int index = trainer->network().find_param(state.name);
    if (index < 0) continue;
    const GenePosition gene =
        gene_position(trainer->network().params()[static_cast<size_t>(index)]);
    const auto& values = genome.cells[gene.cell].values;
    const auto held_values = values.find(gene.name);
    if (held_values == values.end()) continue;
    if (static_cast<int64_t>(held_values->second.size()) != state.tensor.shape.count())
      return invalid(
          cat("the network has ", held_values->second.size(), " values for ", state.name));
    std::ranges::copy(held_values->second, state.tensor.f32());
  }
  LOOM_TRY(trainer->step().restored(0));
  LOOM_ASSIGN(probe, TrainStep::create(trainer->network(), probing, *ops, *pool));
  hyper = HyperNumbers(alpha_optimizer(spec), {});
  return collect();
}

Status Darts::Impl::collect() {
  const Network& network = trainer->network();
  const auto find = [](const TrainStep& step, const std::string& name) -> Tensor {
    for (const StateTensor& state : step.state()) {
      if (state.name == name) return state.tensor;
    }
    return {};
  };
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& p = network.params()[i];
    if (!p.spec.trained) {
      buffers.push_back(p.tensor);
      continue;
    }
    const Tensor gradient = probe->gradients()[i];
    if (p.spec.name == "alpha" && p.child < 0) {
      Alpha& alpha = alphas.emplace_back();
      alpha.value = p.tensor;
      alpha.gradient = gradient;
      const auto count = static_cast<size_t>(p.tensor.shape.count());
      for (std::vector<float>* list : {&alpha.step_gradient, &alpha.m, &alpha.v})
        list->assign(count, 0.0f);
      continue;
    }
    if (spec.order == 1) continue;
    Weight& weight = weights.emplace_back();
    weight.own = find(trainer->step(), p.path);
    weight.probe = find(*probe, p.path);
    weight.gradient = gradient;
  }
  saved_buffers.resize(buffers.size());
  return {};
}

void Darts::Impl::clear_gradients() {
  for (const Weight& w : weights) std::fill_n(w.gradient.f32(), w.count(), 0.0f);
  for (const Alpha& a : alphas) std::fill_n(a.gradient.f32(), a.gradient.shape.count(), 0.0f);
}

// Gradients of the mean loss of a whole batch, at the current weights of the network.
Status Darts::Impl::run(const Dataset& batch) {
  clear_gradients();
  const Tensor& x = probe->x();
  if (x.dtype == DType::i32) {
    std::ranges::copy(batch.ids, x.i32());
  } else {
    std::ranges::copy(batch.inputs, x.f32());
  }
  const Tensor& target = probe->targets()[0];
  if (target.dtype == DType::i32) {
    std::ranges::copy(batch.labels, target.i32());
  } else {
    std::ranges::copy(batch.targets, target.f32());
  }
  const Tensor& weight = probe->weight();
  std::fill_n(weight.f32(), weight.shape.count(), 1.0f / static_cast<float>(weight.shape.count()));
  const Result<StepResult> done = probe->run(0.0);
  return done.ok() ? Status{} : Status(done.error());
}

// Saves buffers, and for the second order weights.
void Darts::Impl::keep() {
  for (size_t i = 0; i < buffers.size(); ++i)
    saved_buffers[i].assign(buffers[i].f32(), buffers[i].f32() + buffers[i].shape.count());
  for (Weight& w : weights) w.kept.assign(w.own.f32(), w.own.f32() + w.count());
}

// Sets the network to the saved weights + by x direction.
Status Darts::Impl::set_weights(float by) {
  for (const Weight& w : weights) {
    float* to = w.probe.f32();
    for (size_t i = 0; i < w.count(); ++i) {
      const float moved = w.direction.empty() ? 0.0f : by * w.direction[i];
      to[i] = w.kept[i] + moved;
    }
  }
  return probe->restored(0, steps);  // so that all runs of a step draw the same numbers
}

Status Darts::Impl::put_back() {
  for (size_t i = 0; i < buffers.size(); ++i) std::ranges::copy(saved_buffers[i], buffers[i].f32());
  for (const Weight& w : weights) std::ranges::copy(w.kept, w.own.f32());
  if (spec.order == 1) return {};
  return trainer->step().restored(trainer->step().updates());
}

Status Darts::Impl::first_order(const Dataset& held_batch) {
  keep();
  LOOM_TRY(run(held_batch));
  for (Alpha& a : alphas)
    a.step_gradient.assign(a.gradient.f32(), a.gradient.f32() + a.gradient.shape.count());
  return put_back();
}

Status Darts::Impl::second_order(const Dataset& train_batch, const Dataset& held_batch,
                                 double rate) {
  constexpr double kNear = 0.01;
  const auto take = [&] {
    for (Weight& w : weights) w.direction.assign(w.gradient.f32(), w.gradient.f32() + w.count());
  };
  keep();
  for (Weight& w : weights) w.direction.clear();
  LOOM_TRY(set_weights(0.0f));
  LOOM_TRY(run(train_batch));
  take();
  LOOM_TRY(set_weights(static_cast<float>(-rate)));
  LOOM_TRY(run(held_batch));
  take();
  double squares = 0;
  for (const Weight& w : weights) {
    for (const float v : w.direction) squares += static_cast<double>(v) * static_cast<double>(v);
  }
  for (Alpha& a : alphas)
    a.step_gradient.assign(a.gradient.f32(), a.gradient.f32() + a.gradient.shape.count());
  const double near = squares > 0 ? kNear / std::sqrt(squares) : 0.0;
  for (const float side : {1.0f, -1.0f}) {
    if (!(near > 0)) break;
    LOOM_TRY(set_weights(side * static_cast<float>(near)));
    LOOM_TRY(run(train_batch));
    const auto share = static_cast<float>(rate / (2 * near)) * side;
    for (Alpha& a : alphas) {
      for (size_t i = 0; i < a.step_gradient.size(); ++i)
        a.step_gradient[i] -= share * a.gradient.f32()[i];
    }
  }
  return put_back();
}

Status Darts::Impl::step_alpha() {
  for (const Alpha& a : alphas) {
    for (const float g : a.step_gradient) {
      if (!std::isfinite(g)) return {};  // as a step of w that is not finite: dropped
    }
  }
  const Optimizer adam = alpha_optimizer(spec);
  std::vector<float> numbers(4), one = {1.0f};
  hyper.forget();
  hyper.fill(spec.alpha_rate, steps, numbers.data());
  Recorder recorder(*ops, *pool, ActivationMode::f32);
  for (Alpha& a : alphas) {
    OptimizeArgs o;
    o.p = a.value;
    o.g = vector_over(a.step_gradient);
    o.m = vector_over(a.m);
    o.v = vector_over(a.v);
    o.hyper = vector_over(numbers);
    o.scale = vector_over(one);
    o.kind = UpdateKind::adam;
    o.beta1 = *adam.beta1;
    o.beta2 = *adam.beta2;
    o.eps = *adam.eps;
    o.decay = *adam.weight_decay;
    LOOM_TRY(recorder.optimize(o));
  }
  return recorder.flush();
}

Darts::Darts(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Darts::Darts(Darts&&) noexcept = default;
Darts& Darts::operator=(Darts&&) noexcept = default;
Darts::~Darts() = default;

Result<Darts> Darts::create(const GridGenome& mixed, const Dataset& train,
                            const Dataset& validation, const DartsSpec& spec, const Ops& ops,
                            ThreadPool& pool) {
  LOOM_TRY(check_darts(spec));
  if (mixed_cells(mixed).empty()) return invalid("the network has no mixed cell to decide");
  if (ops.device != nullptr) return unsupported("architecture search runs on the CPU");
  for (const GeneCell& cell : mixed.cells) {
    if (spec.order == 2 && draws_numbers(cell.layer))
      return unsupported(
          "the second order takes differences of losses, which Dropout would make differences of "
          "draws; take order 1, or leave Dropout out");
    if (cell.dtype) return unsupported("architecture search takes float32 cells");
  }
  for (const Dataset* part : {&train, &validation}) {
    LOOM_TRY(part->check());
    if (part->samples < spec.batch)
      return invalid(cat("a part of ", part->samples, " samples is less than a batch of ",
                         spec.batch, "; take smaller batches or another share"));
    if (!part->lengths.empty())
      return unsupported("architecture search takes whole samples; these have lengths");
    if (!part->weights.empty() || part->ignored)
      return unsupported("architecture search does not weigh samples or leave labels out");
  }
  auto impl = std::make_unique<Impl>();
  impl->spec = spec;
  impl->genome = mixed;
  impl->train = train;
  impl->held = validation;
  impl->ops = &ops;
  impl->pool = &pool;
  LOOM_TRY(impl->begin());
  return Darts(std::move(impl));
}

Status Darts::step(const Dataset& train, const Dataset& validation, double rate) {
  Impl& s = *impl_;
  LOOM_TRY(s.spec.order == 1 ? s.first_order(validation) : s.second_order(train, validation, rate));
  LOOM_TRY(s.step_alpha());
  LOOM_TRY(s.trainer->train_batch(train, rate));
  ++s.steps;
  return {};
}

Result<DartsEpoch> Darts::epoch(const OnStep& on_step) {
  Impl& s = *impl_;
  const int64_t each = s.steps_per_epoch(), total = s.spec.epochs * each;
  Schedule schedule;
  schedule.kind = ScheduleKind::cosine;
  schedule.floor = std::min(s.spec.min_rate, s.spec.rate);
  DartsEpoch report;
  for (int64_t i = 0; i < each; ++i) {
    const double rate = learning_rate(schedule, s.spec.rate, s.steps, total, each, 0);
    const Dataset batch = s.train.select(
        batch_rows(s.train.samples, s.spec.batch, s.steps, s.spec.seed, kTrainOrder));
    const Dataset other =
        s.held.select(batch_rows(s.held.samples, s.spec.batch, s.steps, s.spec.seed, kHeldOrder));
    LOOM_TRY(step(batch, other, rate));
    if (on_step && !on_step(i + 1, each)) return make_error(Code::cancelled, "stopped by on_step");
  }
  LOOM_ASSIGN(const Evaluation train, s.trainer->evaluate(s.train));
  LOOM_ASSIGN(const Evaluation held, s.trainer->evaluate(s.held));
  report.epoch = static_cast<int64_t>(s.history.size()) + 1;
  report.train_loss = train.loss;
  report.validation_loss = held.loss;
  report.accuracy = held.accuracy;
  report.weights = weights();
  s.history.push_back(report);
  return report;
}

const DartsSpec& Darts::spec() const {
  return impl_->spec;
}
const std::vector<DartsEpoch>& Darts::history() const {
  return impl_->history;
}

std::vector<std::vector<double>> Darts::weights() const {
  std::vector<std::vector<double>> out;
  for (const Impl::Alpha& a : impl_->alphas) {
    std::vector<double>& w = out.emplace_back();
    const float* alpha = a.value.f32();
    const auto most = static_cast<double>(*std::max_element(alpha, alpha + a.step_gradient.size()));
    double sum = 0;
    for (size_t i = 0; i < a.step_gradient.size(); ++i) {
      w.push_back(dmath::exp(static_cast<double>(alpha[i]) - most));
      sum += w.back();
    }
    for (double& v : w) v /= sum;
  }
  return out;
}

std::vector<std::vector<float>> Darts::alpha_gradients() const {
  std::vector<std::vector<float>> out;
  for (const Impl::Alpha& a : impl_->alphas) out.push_back(a.step_gradient);
  return out;
}

GridGenome Darts::genome() const {
  GridGenome out = impl_->genome;
  const Network& network = impl_->trainer->network();
  for (const StateTensor& state : impl_->trainer->step().state()) {
    const int index = network.find_param(state.name);
    if (index < 0) continue;
    const GenePosition gene = gene_position(network.params()[static_cast<size_t>(index)]);
    const float* from = state.tensor.f32();
    out.cells[gene.cell].values[gene.name].assign(from, from + state.tensor.shape.count());
  }
  return out;
}

std::vector<StateTensor> Darts::state() const {
  std::vector<StateTensor> out = impl_->trainer->step().state();
  for (size_t i = 0; i < impl_->alphas.size(); ++i) {
    out.push_back({cat("alpha/", i, "/m"), vector_over(impl_->alphas[i].m)});
    out.push_back({cat("alpha/", i, "/v"), vector_over(impl_->alphas[i].v)});
  }
  return out;
}

int64_t Darts::updates() const {
  return impl_->trainer->step().updates();
}

Status Darts::restored(std::vector<DartsEpoch> history, int64_t updates) {
  Impl& s = *impl_;
  s.history = std::move(history);
  s.steps = static_cast<int64_t>(s.history.size()) * s.steps_per_epoch();
  return s.trainer->step().restored(updates);
}

}  // namespace loom::core
