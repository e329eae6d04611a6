#include "learn/step/train_step.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "learn/loss/checks.hpp"
#include "learn/step/train_step_impl.hpp"

namespace loom::core {

// The weight of parameter i: in its number type, with a master unless the packed values themselves
// are trained, and with the ranges of its scales where those are held.
Status TrainStep::Impl::make_weight(int i, Recorder& recorder, Trained& one) {
  const Param& p = network->params()[static_cast<size_t>(i)];
  if (!p.spec.matrix()) {
    one.master = one.weight = p.tensor;
    state.push_back({p.path, one.master});
    return {};
  }
  LOOM_ASSIGN(Buffer values, Buffer::allocate(plain_bytes(DType::f32, p.spec.shape)));
  const Tensor master =
      f32_matrix(reinterpret_cast<float*>(values.data()), p.spec.shape[0], p.spec.shape[1]);
  LOOM_TRY(recorder.convert({p.tensor, master}));
  LOOM_TRY(recorder.flush());
  const DType dtype = p.dtype.value_or(options.dtype.value_or(p.tensor.dtype));
  const bool other = dtype != p.tensor.dtype;
  if (other) LOOM_TRY(network->allocate_param(i, dtype));
  one.weight = p.tensor;
  LOOM_TRY(make_ranges(p, dtype, one));
  // Frozen ranges begin with what the weights are packed from, so weights of the right type are
  // packed as well: a run that is resumed before its first update does the same.
  if (other || !one.ranges.empty()) {
    LOOM_TRY(recorder.pack(pack_of(one, master, options)));
    LOOM_TRY(recorder.flush());
  }
  if (!options.native) {
    one.master = master;
    memory.push_back(std::move(values));
    state.push_back({p.path, one.master});
  } else {
    state.push_back({p.path + "/packed", bytes_of(p.memory)});
  }
  if (!one.ranges.empty()) state.push_back({p.path + "/scale", one.ranges});
  return {};
}

// Memory for the ranges that scales of `dtype` stay at; 0 in it means no range yet.
Status TrainStep::Impl::make_ranges(const Param& p, DType dtype, Trained& one) {
  const int64_t held = options.scale_band > 0 ? r16_frozen_values(dtype) : 0;
  one.ranges = Tensor{};
  if (held == 0) return {};
  const int64_t rows = p.spec.shape[0];
  LOOM_ASSIGN(one.ranges, persistent(held == 1 ? Shape{rows} : Shape{rows, held}));
  return {};
}

Status TrainStep::Impl::make_state() {
  LOOM_ASSIGN(const std::vector<ParamRule> rules, resolve_rules(options.rules, *network));
  hyper = HyperNumbers(options.optimizer, rules);
  LOOM_ASSIGN(tensors.hyper, persistent(Shape{hyper.rows(), 4}));
  LOOM_ASSIGN(tensors.report, persistent(Shape{1, 4}));
  LOOM_ASSIGN(tensors.numbers, persistent(Shape{1, 3}));
  tensors.numbers.f32()[1] = 1.0f;
  Recorder recorder(host_ops(*ops), *pool, ActivationMode::f32);
  for (int i = 0; i < static_cast<int>(network->params().size()); ++i) {
    const Param& p = network->params()[static_cast<size_t>(i)];
    if (!p.spec.trained) {
      state.push_back({p.path, p.tensor});
      if (gathers()) gradients.emplace_back();
      continue;
    }
    Trained one;
    one.param = static_cast<size_t>(i);
    const ParamRule& rule = rules[static_cast<size_t>(i)];
    one.frozen = rule.frozen;
    if (rule.frozen && !options.keep_frozen) {
      one.weight = p.tensor;
    } else {
      LOOM_TRY(make_weight(i, recorder, one));
    }
    one.group = hyper.row_of(rule);
    const bool moves = !rule.frozen;
    const OptimizerState moments = state_of(optimizer_def(options.optimizer.kind), p.spec.shape);
    if (moves && moments.m) {
      LOOM_ASSIGN(one.m, persistent(*moments.m));
      state.push_back({p.path + "/m", one.m});
    }
    if (moves && moments.v) {
      LOOM_ASSIGN(one.v, persistent(*moments.v));
      state.push_back({p.path + "/v", one.v});
    }
    if (gathers()) {
      if (moves) {
        LOOM_ASSIGN(one.gradient, persistent(p.spec.shape));
      }
      gradients.push_back(one.gradient);
    }
    if (gathers() && moves) {
      state.push_back({p.path + "/gradient", one.gradient});
    }
    one.stream = one.param;
    trained.push_back(one);
  }
  LOOM_ASSIGN(feedback, carried_feedback(*network, options.carry_feedback, *ops));
  for (size_t i = 0; i < feedback.tensors().size(); ++i) {
    const Tensor& t = feedback.tensors()[i];
    if (!t.empty()) state.push_back({network->cells()[i].at.str() + "/feedback", t});
  }
  LOOM_TRY(make_following());
  LOOM_ASSIGN(plan, make_plan(*network, options, memory, state));
  tensors.plan = &plan;
  if (const auto make = optimizer_def(options.optimizer.kind).driver; make != nullptr) {
    LOOM_ASSIGN(driver, make({*network, options, trained, *ops, *pool, memory, state}));
    tensors.driver = driver.get();
  }
  LOOM_ASSIGN(attached, Attached::attach(ops->device, ranges(), MemoryUse::state, true));
  if (ops->device != nullptr) {
    LOOM_ASSIGN(reports, loom::core::persistent(Shape{kReports, 4}, reports_memory));
    const MemoryRange range = range_of(reports);
    LOOM_ASSIGN(reports_attached,
                Attached::attach(ops->device, {&range, 1}, MemoryUse::state, false));
  }
  return {};
}

// Tensors that outlive a step: weights, masters, optimizer state.
std::vector<MemoryRange> TrainStep::Impl::ranges() const {
  std::vector<MemoryRange> all;
  for (const Param& p : network->params()) all.push_back({p.tensor.data, p.bytes()});
  for (const Buffer& buffer : memory) all.push_back(range_of(buffer));
  if (!feedback.empty()) all.push_back(range_of(feedback.memory()));
  return all;
}

Status TrainStep::fetch() {
  Impl& s = *impl_;
  if (s.ops->device == nullptr) return {};
  std::vector<MemoryRange> ranges = s.ranges();
  if (s.driver != nullptr) s.driver->add_ranges(ranges);
  return s.ops->device->download(ranges);
}

Status TrainStep::send() {
  Impl& s = *impl_;
  if (s.ops->device == nullptr) return {};
  std::vector<MemoryRange> ranges = s.ranges();
  if (s.driver != nullptr) s.driver->add_ranges(ranges);
  for (const MemoryRange& range : ranges) {
    LOOM_TRY(s.ops->device->upload(range.begin, range.bytes));
  }
  return {};
}

Status TrainStep::Impl::make_programs() {
  const auto compile = [&](Trace trace,
                           std::vector<Tensor*> pins) -> Result<std::unique_ptr<Program>> {
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, *ops, *pool));
    return std::make_unique<Program>(std::move(program));
  };
  StepTensors kept;
  kept.hyper = tensors.hyper;
  kept.numbers = tensors.numbers;
  kept.report = tensors.report;
  kept.plan = tensors.plan;
  kept.driver = tensors.driver;
  tensors = std::move(kept);
  given.reset();
  Trace forward(DType::f32, true);
  const bool together = ops->device != nullptr;
  LOOM_TRY(
      record_step(forward, *network, options, trained, tensors_of(feedback), tensors, together));
  LOOM_ASSIGN(step, compile(std::move(forward), tensors.pins()));
  mark_present(tensors.network, network->input()[0]);
  mark_lengths(tensors.network.mask, tensors.network.ends, {});
  LOOM_TRY(set_whole_documents(tensors.network));
  if (gathers() && !updates_alone()) {
    Trace apply(DType::f32);
    LOOM_TRY(record_update(apply, options, trained, tensors, together));
    LOOM_ASSIGN(update, compile(std::move(apply), {}));
  }
  Trace masters(DType::f32);
  LOOM_TRY(record_pack(masters, options, trained));
  LOOM_ASSIGN(pack, compile(std::move(masters), {}));
  return driver != nullptr ? driver->make_programs(tensors, feedback) : Status{};
}

Status TrainStep::Impl::make_with_loss() {
  if (given != nullptr || options.loss.sequence()) return {};
  if (optimizer_def(options.optimizer.kind).targets_drawn)
    return invalid(cat(optimizer_name(options.optimizer.kind),
                       " draws targets of softmax_ce and mse, not of a loss of one's own"));
  TrainStepOptions own = options;
  own.custom_loss = true;
  custom_loss_tensors = {};
  custom_loss_tensors.hyper = tensors.hyper;
  custom_loss_tensors.numbers = tensors.numbers;
  custom_loss_tensors.report = tensors.report;
  custom_loss_tensors.plan = tensors.plan;
  custom_loss_tensors.driver = tensors.driver;
  Trace trace(DType::f32, true);
  LOOM_TRY(record_step(trace, *network, own, trained, tensors_of(feedback), custom_loss_tensors,
                       ops->device != nullptr));
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), custom_loss_tensors.pins(), *ops, *pool));
  given = std::make_unique<Program>(std::move(program));
  mark_present(custom_loss_tensors.network, network->input()[0]);
  mark_lengths(custom_loss_tensors.network.mask, custom_loss_tensors.network.ends, {});
  LOOM_TRY(set_whole_documents(custom_loss_tensors.network));
  return {};
}

// The middle of a step: the caller gets y, and returns the loss and its gradient. On an error the
// loss is NaN and the gradient zero, so nothing changes.
Status TrainStep::Impl::take_loss(const GivenLoss& loss) {
  const StepTensors& t = custom_loss_step();
  const Tensor& dy = t.custom_gradient;
  std::fill_n(dy.f32(), dy.shape.count(), 0.0f);
  const Result<double> value = loss(t.network.y, dy);
  if (!value.ok()) std::fill_n(dy.f32(), dy.shape.count(), 0.0f);
  t.custom_loss.f32()[0] =
      value.ok() ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
  LOOM_TRY(to_device(*ops, dy));
  LOOM_TRY(to_device(*ops, t.custom_loss));
  return value.ok() ? Status{} : Status(value.error());
}

Status TrainStep::Impl::set_hyper(double rate) {
  if (driver != nullptr)
    LOOM_TRY(driver->begin_batch(updates * options.accumulate + batches, *ops));
  if (options.noise.std > 0) {
    tensors.numbers.f32()[2] = static_cast<float>(options.noise.deviation(updates));
    LOOM_TRY(to_device(*ops, tensors.numbers));
  }
  return hyper.fill(rate, updates, tensors.hyper.f32()) ? to_device(*ops, tensors.hyper) : Status{};
}

// Data that a step needs besides its batch.
Status TrainStep::Impl::prepare(double rate) {
  LOOM_TRY(enough_present(tensors.network));
  LOOM_TRY(set_hyper(rate));
  tensors.network.step.f32()[0] = step_number();
  return {};
}

// The update of record_step() or record_update().
Status TrainStep::Impl::update_recorded(StepResult& result) {
  if (driver != nullptr) LOOM_TRY(driver->begin_update(updates, *ops, *pool));
  if (update != nullptr) LOOM_TRY(update->run());
  LOOM_TRY(to_host(*ops, {tensors.report, tensors.loss}));
  result.norm = static_cast<double>(tensors.report.f32()[0]);
  const float scale = tensors.report.f32()[1];
  result.updated = result.finite = scale == scale;
  return {};
}

Status TrainStep::Impl::update_by_driver(double rate, StepResult& result) {
  LOOM_ASSIGN(const DriverOutcome outcome, driver->update(rate, updates == 0));
  result.norm = outcome.norm;
  result.updated = result.finite = outcome.updated;
  return pack->run();
}

TrainStep::TrainStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrainStep::TrainStep(TrainStep&&) noexcept = default;
TrainStep& TrainStep::operator=(TrainStep&&) noexcept = default;
TrainStep::~TrainStep() = default;

Result<TrainStep> TrainStep::create(Network& network, const TrainStepOptions& options,
                                    const Ops& ops, ThreadPool& pool) {
  if (options.accumulate < 1) {
    return invalid(cat("accumulate is ", options.accumulate, ", must be at least 1"));
  }
  if (options.native && options.accumulate > 1) {
    return invalid(
        "native training (without f32 masters) cannot add up gradients; set accumulate to 1");
  }
  LOOM_TRY(check_step_options(options));
  if (!options.custom_loss) LOOM_TRY(check_loss(options.loss, options.rule));
  if (!(options.scale_band >= 0 && options.scale_band < 1)) {
    return invalid(cat("scale_band is ", options.scale_band, ", must be at least 0 and below 1"));
  }
  auto impl = std::make_unique<Impl>();
  impl->network = &network;
  impl->options = options;
  impl->options.optimizer = resolved(options.optimizer);
  impl->ops = &ops;
  impl->pool = &pool;
  LOOM_TRY(network.check_loaded());
  LOOM_TRY(impl->make_state());
  LOOM_TRY(impl->make_programs());
  return TrainStep(std::move(impl));
}

Result<StepResult> TrainStep::run(double learning_rate) {
  Impl& s = *impl_;
  LOOM_TRY(s.take_all());
  LOOM_TRY(show_average(false));
  LOOM_TRY(s.prepare(learning_rate));
  if (s.driver != nullptr && s.batches == 0) LOOM_TRY(s.driver->before_step(s.tensors, s.updates));
  if (s.observer) {
    LOOM_TRY(s.step->run([&](int64_t id, const Tensor& t) { s.show(id, t); }));
  } else {
    LOOM_TRY(s.step->run());
  }
  LOOM_ASSIGN(const StepResult result, s.finish_step(learning_rate, s.tensors.loss));
  if (!result.finite) LOOM_TRY(forget());
  return result;
}

// The update that follows a step, if it is due.
Result<StepResult> TrainStep::Impl::finish_step(double rate, const Tensor& loss) {
  StepResult result;
  const bool due = ++batches >= options.accumulate || flush;
  flush = false;
  if (due) {
    batches = 0;
    LOOM_TRY(updates_alone() ? update_by_driver(rate, result) : update_recorded(result));
  }
  if (!due || updates_alone() || loss.data != tensors.loss.data) LOOM_TRY(to_host(*ops, {loss}));
  if (!plan.stats.empty()) LOOM_TRY(to_host(*ops, {plan.stats}));
  result.loss = static_cast<double>(loss.f32()[0]);
  if (!result.updated) return result;
  ++updates;
  LOOM_TRY(follow_update());
  return result;
}

void TrainStep::update_after_next() {
  impl_->flush = true;
}

Result<Tensor> TrainStep::custom_loss_x() {
  LOOM_TRY(impl_->make_with_loss());
  return impl_->custom_loss_step().network.x;
}

Status TrainStep::set_present(int64_t samples) {
  mark_present(impl_->tensors.network, samples);
  mark_present(impl_->custom_loss_tensors.network, samples);
  return enough_present(impl_->tensors.network);
}

void TrainStep::set_lengths(std::span<const int64_t> lengths) {
  for (const StepTensors* t : {&impl_->tensors, &impl_->custom_loss_tensors})
    mark_lengths(t->network.mask, t->network.ends, lengths);
}

Status TrainStep::set_documents(std::span<const std::vector<int64_t>> samples) {
  for (const StepTensors* t : {&impl_->tensors, &impl_->custom_loss_tensors}) {
    const Tensor& positions = t->network.row_positions;
    if (positions.empty()) continue;
    if (std::ssize(samples) != impl_->network->input()[0])
      return invalid(cat("documents of ", samples.size(), " samples, but a batch has ",
                         impl_->network->input()[0]));
    LOOM_TRY(mark_documents(positions, samples));
  }
  return {};
}

Result<StepResult> TrainStep::run_with_loss(double learning_rate, const GivenLoss& loss) {
  Impl& s = *impl_;
  LOOM_TRY(s.take_all());
  LOOM_TRY(show_average(false));
  LOOM_TRY(s.make_with_loss());
  const StepTensors& own = s.custom_loss_step();
  LOOM_TRY(enough_present(own.network));
  LOOM_TRY(s.set_hyper(learning_rate));
  own.network.step.f32()[0] = s.step_number();
  Status taken;
  Program& recorded = s.given != nullptr ? *s.given : *s.step;
  LOOM_TRY(recorded.run([&](int64_t id, const Tensor& t) {
    if (id == kGivenNote) {
      taken = s.take_loss(loss);
    } else if (s.observer) {
      s.show(id, t);
    }
  }));
  if (!taken.ok()) {
    LOOM_TRY(forget());
    return taken.error();
  }
  // The update that is recorded apart asks whether the loss is finite.
  if (s.update != nullptr && own.loss.data != s.tensors.loss.data) {
    LOOM_TRY(to_host(*s.ops, {own.loss}));
    s.tensors.loss.f32()[0] = own.loss.f32()[0];
    LOOM_TRY(to_device(*s.ops, s.tensors.loss));
  }
  LOOM_ASSIGN(const StepResult result, s.finish_step(learning_rate, own.loss));
  if (!result.finite) LOOM_TRY(forget());
  return result;
}

Status TrainStep::begin(double learning_rate, bool kept) {
  Impl& s = *impl_;
  if (!s.overlaps()) {
    LOOM_ASSIGN(const StepResult result, run(learning_rate));
    s.results.push_back(result);
    return {};
  }
  if (s.begun == 0) s.taken_at = Impl::Clock::now();
  while (s.begun - s.taken >= s.max_ahead) LOOM_TRY(s.take());
  LOOM_TRY(s.prepare(learning_rate));
  LOOM_TRY(kept ? s.step->run_again(s.tensors.network.step) : s.step->run());
  const Tensor to = s.reports.slice_rows(s.begun % Impl::kReports, 1);
  LOOM_TRY(s.ops->device->copy(range_of(s.tensors.report), to.data));
  ++s.begun;
  ++s.updates;
  return s.begun % Impl::kGroup == 0 ? s.ask() : Status{};
}

// Starts the download of the remaining reports, all of one group.
Status TrainStep::Impl::ask() {
  if (asked == begun) return {};
  const int64_t first = asked % kReports, count = begun - asked;
  const MemoryRange range = range_of(reports.slice_rows(first, count));
  LOOM_ASSIGN(const int64_t ticket, ops->device->begin_download({&range, 1}));
  fetches.push_back({ticket, first, count});
  asked = begun;
  return {};
}

// Results of the oldest steps that were asked for.
Status TrainStep::Impl::take() {
  const Fetch fetch = fetches.front();
  fetches.pop_front();
  LOOM_TRY(ops->device->end_download(fetch.ticket));
  for (int64_t i = 0; i < fetch.count; ++i) {
    const float* report = reports.f32_row(fetch.first + i);
    StepResult result;
    result.norm = static_cast<double>(report[0]);
    result.updated = result.finite = report[1] == report[1];
    result.loss = static_cast<double>(report[2]);
    if (!result.updated) --updates;
    results.push_back(result);
  }
  taken += fetch.count;
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> each = (now - taken_at) / static_cast<double>(fetch.count);
  taken_at = now;
  const double most = kAhead / std::max(each.count(), 1e-9);
  max_ahead = static_cast<int64_t>(std::clamp<double>(most, kGroup, kReports));
  return {};
}

Status TrainStep::Impl::take_all() {
  if (begun == 0) return {};
  LOOM_TRY(ask());
  while (!fetches.empty()) LOOM_TRY(take());
  begun = asked = taken = 0;
  return {};
}

Result<std::vector<StepResult>> TrainStep::ready() {
  Impl& s = *impl_;
  while (!s.fetches.empty() && s.ops->device->downloaded(s.fetches.front().ticket)) {
    LOOM_TRY(s.take());
  }
  return std::exchange(impl_->results, {});
}

Result<std::vector<StepResult>> TrainStep::finish() {
  LOOM_TRY(impl_->take_all());
  return std::exchange(impl_->results, {});
}

int64_t TrainStep::ahead() const {
  return impl_->overlaps() ? Impl::kGroup : 1;
}

// Notes 0 ... cells - 1 are outputs of cells, the next as many are gradients of these outputs.
void TrainStep::Impl::show(int64_t id, const Tensor& values) const {
  const auto cells = static_cast<int64_t>(network->cells().size());
  const GridNode& cell = network->cells()[static_cast<size_t>(id % cells)];
  observer({cell.at, cell.node.config.def->name, id >= cells, values});
}

void TrainStep::observe(LayerObserver observer) {
  impl_->observer = std::move(observer);
}

const Tensor& TrainStep::x() const {
  return impl_->tensors.network.x;
}
const std::vector<Tensor>& TrainStep::custom_loss_inputs() const {
  return impl_->custom_loss_step().network.more;
}
const std::vector<Tensor>& TrainStep::more() const {
  return impl_->tensors.network.more;
}
const Tensor& TrainStep::mask() const {
  return impl_->tensors.network.mask;
}
const std::vector<Tensor>& TrainStep::targets() const {
  return impl_->tensors.targets;
}
const Tensor& TrainStep::weight() const {
  return impl_->tensors.weight;
}
const Tensor& TrainStep::y() const {
  return impl_->tensors.network.y;
}
const std::vector<StateTensor>& TrainStep::state() const {
  return impl_->state;
}
int64_t TrainStep::updates() const {
  return impl_->updates;
}
const std::vector<Tensor>& TrainStep::gradients() const {
  return impl_->gradients;
}

const Tensor& TrainStep::link_stats() const {
  return impl_->plan.stats;
}
std::vector<size_t> TrainStep::link_cells() const {
  std::vector<size_t> cells;
  if (impl_->plan.stats.empty()) return cells;
  for (const SignalCut& cut : impl_->plan.cuts) cells.push_back(cut.below);
  cells.push_back(impl_->plan.top.value_or(impl_->network->cells().size() - 1));
  return cells;
}

int64_t TrainStep::pending() const {
  return impl_->batches;
}

Status TrainStep::restored(int64_t updates, int64_t pending) {
  LOOM_TRY(impl_->take_all());
  impl_->hidden.clear();
  impl_->updates = updates;
  impl_->batches = pending;
  if (updates == 0) LOOM_TRY(impl_->restart_following());
  LOOM_TRY(send());
  return impl_->pack->run();
}

Status TrainStep::morph(const Coord& at, DType dtype) {
  Impl& s = *impl_;
  if (s.options.native) return invalid("weights without a master cannot change their number type");
  const std::string prefix = at.str() + "/";
  bool found = false;
  LOOM_TRY(s.take_all());
  LOOM_TRY(show_average(false));
  LOOM_TRY(fetch());
  s.attached = {};
  s.hyper.forget();
  for (Trained& one : s.trained) {
    const Param& p = s.network->params()[one.param];
    if (!p.spec.matrix() || p.path.compare(0, prefix.size(), prefix) != 0) continue;
    if (p.adapter || one.master.empty()) continue;
    found = true;
    LOOM_TRY(s.network->allocate_param(static_cast<int>(one.param), dtype));
    one.weight = p.tensor;
    std::erase_if(s.state, [&](const StateTensor& t) { return t.name == p.path + "/scale"; });
    LOOM_TRY(s.make_ranges(p, dtype, one));
    if (!one.ranges.empty()) s.state.push_back({p.path + "/scale", one.ranges});
  }
  LOOM_ASSIGN(s.attached, Attached::attach(s.ops->device, s.ranges(), MemoryUse::state, true));
  if (!found)
    return make_error(Code::not_found, cat("cell ", at.str(), " has no matrix of its own"));
  LOOM_TRY(s.make_programs());
  return s.pack->run();
}

Status TrainStep::forget() {
  return impl_->feedback.forget(*impl_->ops);
}

Status TrainStep::refresh_scales() {
  for (const Trained& p : impl_->trained) {
    if (p.ranges.empty()) continue;
    std::fill_n(p.ranges.f32(), p.ranges.shape.count(), 0.0f);
    LOOM_TRY(to_device(*impl_->ops, p.ranges));
  }
  return impl_->pack->run();
}

int64_t TrainStep::arena_bytes() const {
  const int64_t driver = impl_->driver != nullptr ? impl_->driver->arena_bytes() : 0;
  const int64_t own = impl_->given != nullptr ? impl_->given->arena_bytes() : 0;
  return own + driver + impl_->step->arena_bytes() +
         (impl_->update ? impl_->update->arena_bytes() : 0);
}
int64_t TrainStep::state_bytes() const {
  int64_t bytes = impl_->driver != nullptr ? impl_->driver->state_bytes() : 0;
  for (const Buffer& b : impl_->memory) bytes += b.size();
  return bytes + impl_->feedback.memory().size();
}

}  // namespace loom::core
