// MeshTrainer: fills windows of a core mesh trainer from a dataset, which it reads as a stream.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/network/mesh_impl.hpp"
#include "api/train/trainer_options.hpp"
#include "base/text.hpp"
#include "learn/loss/checks.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "mesh/mesh_trainer.hpp"
#include "ops/ops.hpp"

namespace loom {

using core::cat;
using core::invalid;

struct MeshTrainer::Impl {
  Network network;
  Engine engine;
  core::MeshOptions mesh;
  core::MeshTrainOptions plan;
  MeshTrainerOptions options;
  int64_t batch = 1;
  std::unique_ptr<core::Network> copy;
  std::optional<core::MeshTrainer> trainer;

  // The position in the stream of an epoch.
  struct Stream {
    Tensor x, y;
    std::vector<Tensor> ports;  // ports after the first, [samples, port]
    bool labels = false;
    int64_t length = 0;   // ticks with a sample, per stream
    int64_t outputs = 1;  // values of a target, or labels
    int64_t correct = 0, counted = 0;
    double loss = 0;
  };
  Status prepare(const Dataset& data);
  Status check_targets(const Tensor& y, int64_t samples) const;
  Result<Stream> stream_of(const Dataset& data) const;
  Status add_ports(const Dataset& data, Stream& s) const;
  int64_t windows(const Stream& s) const;
  int64_t fill_window(const Stream& s);
  void count_correct(Stream& s) const;
  Status run_epoch(Stream& s, const MeshFitOptions& o, MeshEpoch& epoch);
  Status keep_weights();
};

namespace {

// Copies row `sample` of contiguous values to row `row` of `to`.
void copy_sample(const Tensor& from, int64_t sample, int64_t row, int64_t each,
                 const core::Tensor& to) {
  if (from.dtype() == DType::int32) {
    std::copy_n(from.values<int32_t>()->data() + sample * each, each, to.i32() + row * each);
  } else {
    std::copy_n(from.values<float>()->data() + sample * each, each, to.f32() + row * each);
  }
}

}  // namespace

MeshTrainer::MeshTrainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeshTrainer::MeshTrainer(MeshTrainer&&) noexcept = default;
MeshTrainer& MeshTrainer::operator=(MeshTrainer&&) noexcept = default;
MeshTrainer::~MeshTrainer() = default;

Result<MeshTrainer> MeshTrainer::create(const Network& network, const MeshOptions& mesh,
                                        const MeshTrainerOptions& options) {
  if (!(options.rate >= 0) || !std::isfinite(options.rate))
    return invalid(cat("rate is ", options.rate, ", must be 0 or more"));
  if (core::optimizer_def(options.optimizer.kind).all_samples)
    return invalid(
        cat(optimizer_name(options.optimizer.kind),
            " takes whole data sets, and a mesh is trained in windows; choose another optimizer"));
  const Engine engine = mesh.engine.value_or(network.impl().engine);
  auto impl =
      std::make_unique<Impl>(Impl{network, engine, {}, {}, options, mesh.batch, nullptr, {}});
  LOOM_ASSIGN(impl->mesh, core::mesh_options(mesh));
  core::MeshTrainOptions& plan = impl->plan;
  core::fill_options(options, plan.step);
  plan.steady = options.rule_steady;
  plan.window = options.window;
  plan.stride = options.stride;
  plan.budget = options.memory;
  LOOM_ASSIGN(const std::shared_ptr<const core::Network> weights, network.impl().weights());
  LOOM_ASSIGN(core::Network copy, core::mesh_network(network.impl().model, *weights, mesh.batch));
  impl->copy = std::make_unique<core::Network>(std::move(copy));
  // Invalid options that need no samples are refused here.
  LOOM_ASSIGN(
      const core::MeshTopology topology,
      core::MeshTopology::create(*impl->copy, network.impl().model.network.grid, impl->mesh));
  if (topology.slots()[static_cast<size_t>(topology.output())].fill < 0)
    return invalid("nothing ever reaches the last cell; link it to the input");
  return MeshTrainer(std::move(impl));
}

// Decides the loss from the first samples.
Status MeshTrainer::Impl::prepare(const Dataset& data) {
  if (trainer) return {};
  if (!data.lengths().empty())
    return core::invalid("a mesh ticks through whole samples; these have lengths");
  core::TrainedModel& known = network.impl().model;
  core::LossSpec& loss = plan.step.loss;
  if (options.loss == Loss::automatic) loss.kind = core::default_loss(data.has_labels());
  if (loss.sequence() || loss.pairs())
    return core::invalid(core::cat("a mesh is not trained with ", loss_name(loss.kind)));
  if (data.has_labels() && !loss.has_classes()) return core::labels_need_classes();
  plan.step.class_ids = data.has_labels();
  plan.step.dtype = known.dtype;
  LOOM_ASSIGN(trainer, core::MeshTrainer::create(*copy, known.network.grid, mesh, plan,
                                                 *engine.impl().ops, engine.impl().pool));
  known.loss = loss;
  if (!data.classes().empty()) known.names = data.classes();
  if (!data.impl().columns.empty()) known.columns = data.impl().columns;
  return {};
}

// Checked row by row against the prediction of a tick.
Status MeshTrainer::Impl::check_targets(const Tensor& y, int64_t samples) const {
  LOOM_ASSIGN(const std::span<const float> values, y.values<float>());
  const auto width = static_cast<size_t>(trainer->target().cols());
  for (size_t first = 0; first < values.size(); first += width) {
    const size_t sample = first / (values.size() / static_cast<size_t>(samples));
    LOOM_TRY(core::check_target(plan.step.loss, values.subspan(first, width),
                                core::cat("sample ", sample)));
  }
  return {};
}

Result<MeshTrainer::Impl::Stream> MeshTrainer::Impl::stream_of(const Dataset& data) const {
  const core::TrainedModel& model = network.impl().model;
  Stream s;
  s.labels = data.has_labels();
  if (!s.labels && !data.has_targets())
    return invalid("the dataset has inputs alone; training needs labels or targets");
  s.length = data.samples() / batch;
  if (s.length < 1)
    return invalid(cat(data.samples(), " samples make no ", batch, " streams; lower batch"));
  const int64_t each = data.x().size() / data.samples();
  if (each != model.network.input.count()) {
    return invalid(cat("a sample of the dataset is ", shape_text(data.sample()),
                       ", the network takes ", model.network.input.str()));
  }
  LOOM_ASSIGN(s.x, core::prepared_inputs(*copy, model.normalization, data.x()));
  LOOM_TRY(add_ports(data, s));
  s.y = data.y();
  s.outputs = s.y.size() / data.samples();
  const int64_t expected = trainer->target().shape.count() / (trainer->window() * batch);
  if (s.outputs != expected) {
    return invalid(
        cat("a target of the dataset has ", s.outputs, " values, the last cell gives ", expected));
  }
  if (!s.labels) LOOM_TRY(check_targets(s.y, data.samples()));
  return s;
}

// Every port except the first takes the additional input of its name.
Status MeshTrainer::Impl::add_ports(const Dataset& data, Stream& s) const {
  const core::MeshTopology& topology = trainer->topology();
  const std::vector<core::InputSpec>& further = copy->extra_inputs();
  for (size_t p = 1; p < topology.ports().size(); ++p) {
    const core::MeshPort& port = topology.ports()[p];
    const std::string what = cat("the port '", core::printable(port.name), "'");
    if (p <= further.size() && !further[p - 1].batched)
      return core::unsupported(cat("all samples share the input of ", what,
                                   "; a mesh is trained with one for each sample"));
    Result<Tensor> values = data.input(port.name, 0, data.samples());
    if (!values.ok())
      return invalid(cat("the samples have no input for ", what, "; add one with its name"));
    if (values->size() * batch != data.samples() * port.shape.count())
      return invalid(cat(what, " takes ", port.shape.str(), ", a sample has ",
                         shape_text(values->slice(0, 1)->shape())));
    LOOM_ASSIGN(s.ports.emplace_back(), core::port_values(topology, static_cast<int>(p), *values));
  }
  for (const std::string& name : data.further_inputs()) {
    if (topology.port(name) > 0) continue;
    return invalid(cat("the samples have an input '", core::printable(name),
                       "', which the mesh has no port for"));
  }
  return {};
}

int64_t MeshTrainer::Impl::windows(const Stream& s) const {
  const int64_t ticks = s.length + trainer->lag();
  const int64_t more = std::max<int64_t>(ticks - trainer->window(), 0);
  return 1 + (more + trainer->stride() - 1) / trainer->stride();
}

// Fills the window at the trainer's position; returns the number of rows that count.
int64_t MeshTrainer::Impl::fill_window(const Stream& s) {
  const int64_t first = trainer->position(), window = trainer->window(), lag = trainer->lag();
  const core::Tensor &target = trainer->target(), &weight = trainer->weight();
  const int64_t rows = trainer->rows() / batch;
  int64_t counted = 0;
  for (int64_t i = 0; i < window * batch; ++i) {
    const int64_t tick = first + i / batch, stream = i % batch;
    // After the end of a stream its last sample is repeated.
    const int64_t sample = stream * s.length + std::min(tick, s.length - 1);
    for (size_t p = 0; p <= s.ports.size(); ++p) {
      const core::Tensor& x = trainer->x(static_cast<int>(p));
      copy_sample(p == 0 ? s.x : s.ports[p - 1], sample, i, x.shape.count() / (window * batch), x);
    }
    const int64_t due = tick - lag;
    const int64_t time_step = stream * s.length + std::clamp<int64_t>(due, 0, s.length - 1);
    copy_sample(s.y, time_step, i, s.outputs, target);
    // Rows that an earlier window counted do not count again.
    const bool fresh = first == 0 || i / batch >= window - trainer->stride();
    const bool counts = fresh && due >= 0 && due < s.length;
    std::fill_n(weight.f32() + i * rows, rows, counts ? 1.0f : 0.0f);
    counted += counts ? rows : 0;
  }
  for (int64_t i = 0; i < window * trainer->rows() && counted > 0; ++i)
    weight.f32()[i] /= static_cast<float>(counted);
  return counted;
}

void MeshTrainer::Impl::count_correct(Stream& s) const {
  const core::Tensor& y = trainer->y();
  for (int64_t r = 0; r < y.rows(); ++r) {
    if (!(trainer->weight().f32()[r] > 0)) continue;
    const float* row = y.f32_row(r);
    s.correct += std::max_element(row, row + y.cols()) - row == trainer->target().i32()[r] ? 1 : 0;
  }
}

Status MeshTrainer::Impl::run_epoch(Stream& s, const MeshFitOptions& o, MeshEpoch& epoch) {
  LOOM_TRY(trainer->reset());
  const int64_t total = windows(s);
  for (int64_t w = 0; w < total; ++w) {
    const int64_t counted = fill_window(s);
    core::StepResult result;
    {
      const std::lock_guard turn(engine.impl().turn);
      LOOM_ASSIGN(result, trainer->run(options.rate));
      if (s.labels) LOOM_TRY(core::to_host(*engine.impl().ops, {trainer->y()}));
    }
    if (!result.finite) {
      return invalid(cat("epoch ", epoch.number, ": the loss of window ", w + 1,
                         " is not finite; lower the rate or clip the gradients"));
    }
    s.loss += result.loss * static_cast<double>(counted);
    s.counted += counted;
    if (s.labels) count_correct(s);
    if (o.on_window && !o.on_window((epoch.number - 1) * total + w + 1, o.epochs * total))
      return core::make_error(Code::cancelled, "stopped");
  }
  return {};
}

// Gives the network a copy of the current packed weights.
Status MeshTrainer::Impl::keep_weights() {
  LOOM_TRY(trainer->step().fetch());
  LOOM_ASSIGN(core::Network made, core::mesh_network(network.impl().model, *copy, 1));
  network.impl().set_weights(std::move(made));
  network.impl().origin = nullptr;
  network.impl().fresh = false;
  network.impl().trained = true;
  return {};
}

Result<std::vector<MeshEpoch>> MeshTrainer::fit(const Dataset& data,
                                                const MeshFitOptions& options) {
  using Clock = std::chrono::steady_clock;
  Impl& impl = *impl_;
  LOOM_TRY(impl.prepare(data));
  LOOM_ASSIGN(const Impl::Stream samples, impl.stream_of(data));
  std::vector<MeshEpoch> epochs;
  Status status;
  for (int64_t e = 1; e <= options.epochs && status.ok(); ++e) {
    const Clock::time_point start = Clock::now();
    Impl::Stream s = samples;
    MeshEpoch epoch;
    epoch.number = e;
    status = impl.run_epoch(s, options, epoch);
    if (!status.ok()) break;
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const auto counted = static_cast<double>(std::max<int64_t>(s.counted, 1));
    epoch.loss = s.loss / counted;
    if (s.labels) epoch.accuracy = static_cast<double>(s.correct) / counted;
    epoch.ticks_per_second = static_cast<double>(s.length) / std::max(seconds.count(), 1e-9);
    epochs.push_back(epoch);
    if (options.on_epoch) options.on_epoch(epoch);
  }
  LOOM_TRY(impl.keep_weights());
  LOOM_TRY(std::move(status));
  return epochs;
}

}  // namespace loom
