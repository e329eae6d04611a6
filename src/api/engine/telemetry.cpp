#include "loom/telemetry.hpp"

#include <atomic>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "layers/core/layer.hpp"
#include "telemetry/queue.hpp"

namespace loom::core {
namespace {

double system_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string picture_name(const Network& network, size_t cell) {
  const GridNode& node = network.cells()[cell];
  return cat("z", node.at.z, "_y", node.at.y, "_x", node.at.x, "_l", node.at.l, "_",
             node.node.config.def->name);
}

int64_t parameters_of(const Network& network, const Coord& at) {
  int64_t count = 0;
  for (const Param& param : network.params()) {
    if (param.cell == at) count += param.tensor.shape.count();
  }
  return count;
}

Place place_of(const Coord& at) {
  return {at.z, at.y, at.x, at.l};
}

void add_branches(const LayerConfig& layer, std::vector<std::string>& out) {
  for (const LayerConfig& child : layer.children) out.emplace_back(child.def->name);
}

PictureCell picture_cell(const Network& network, const GridNode& cell) {
  PictureCell out;
  out.at = place_of(cell.at);
  out.parameters = parameters_of(network, cell.at);
  bool matrix = false;
  for (const Param& param : network.params()) {
    if (!(param.cell == cell.at) || matrix) continue;
    out.dtype = static_cast<int>(param.tensor.dtype);
    matrix = param.tensor.shape.rank() > 1;
  }
  if (cell.link >= 0)
    out.links.push_back(place_of(network.cells()[static_cast<size_t>(cell.link)].at));
  const LayerConfig& layer = cell.node.config;
  add_branches(layer, out.branches);
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    if (layer.def->fields[i].name == "combine") out.combine = layer.text(static_cast<int>(i));
  }
  return out;
}

// The cells in the order of computation. A cell reads the previous one, or the cell of its link.
std::vector<PictureNode> picture_of(const Network& network) {
  std::vector<PictureNode> nodes{{"input", "Placeholder", {}, {}}};
  for (size_t i = 0; i < network.cells().size(); ++i) {
    const GridNode& cell = network.cells()[i];
    const std::string before = i == 0 ? "input" : nodes.back().name;
    PictureNode node{picture_name(network, i),
                     std::string(cell.node.config.def->name),
                     {},
                     {{"output", cell.out.str()}}};
    if (cell.link < 0 || cell.skip) node.inputs.push_back(before);
    if (cell.link >= 0)
      node.inputs.push_back(picture_name(network, static_cast<size_t>(cell.link)));
    node.attributes.emplace_back("parameters", cat(parameters_of(network, cell.at)));
    if (cell.feedback) node.attributes.emplace_back("feedback", "true");
    node.cell = picture_cell(network, cell);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<std::unique_ptr<Sink>>> sinks_of(const TelemetryOptions& options, double now) {
  std::vector<std::unique_ptr<Sink>> sinks;
  if (!options.json_lines.empty()) {
    LOOM_ASSIGN(auto sink, json_lines_sink(options.json_lines));
    sinks.push_back(std::move(sink));
  }
  if (!options.tensorboard.empty()) {
    LOOM_ASSIGN(auto sink, tensorboard_sink(options.tensorboard, static_cast<int64_t>(now)));
    sinks.push_back(std::move(sink));
  }
  if (!options.prometheus.empty()) {
    LOOM_ASSIGN(auto sink, prometheus_sink(options.prometheus));
    sinks.push_back(std::move(sink));
  }
  if (!options.http.empty()) {
    LOOM_ASSIGN(auto sink, http_sink(options.http));
    sinks.push_back(std::move(sink));
  }
  if (!options.udp.empty()) {
    LOOM_ASSIGN(auto sink, udp_sink(options.udp));
    sinks.push_back(std::move(sink));
  }
  if (options.on_line) sinks.push_back(line_sink(options.on_line));
  if (sinks.empty() && options.tanhi.empty())
    return invalid(
        "telemetry needs json_lines, tensorboard, prometheus, http, udp, tanhi or on_line");
  if (options.queue < 1) return invalid(cat("queue is ", options.queue, ", must be at least 1"));
  return sinks;
}

}  // namespace
}  // namespace loom::core

namespace loom {

struct Telemetry::Impl {
  Impl(std::vector<std::unique_ptr<core::Sink>> sinks, const TelemetryOptions& options)
      : clock(options.clock), queue(std::move(sinks), static_cast<size_t>(options.queue)) {}

  core::Record record(core::Record::Kind kind, std::string_view tag, int64_t step) const {
    core::Record r;
    r.kind = kind;
    r.tag = tag;
    r.step = step;
    r.wall = clock ? clock() : core::system_seconds();
    return r;
  }

  std::function<double()> clock;
  core::RecordQueue queue;
  // Passes of layers come in thousands: a separate queue keeps them from displacing other records.
  std::optional<core::RecordQueue> grid;
  std::atomic<int64_t> passes = 0;  // and starts of runs
};

Telemetry::Telemetry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Telemetry::Telemetry(Telemetry&&) noexcept = default;
Telemetry& Telemetry::operator=(Telemetry&&) noexcept = default;
Telemetry::~Telemetry() = default;

Result<Telemetry> Telemetry::open(const TelemetryOptions& options) {
  const double now = options.clock ? options.clock() : core::system_seconds();
  LOOM_ASSIGN(auto sinks, core::sinks_of(options, now));
  auto impl = std::make_unique<Impl>(std::move(sinks), options);
  if (!options.tanhi.empty()) {
    constexpr size_t kPasses = 1024;
    std::vector<std::unique_ptr<core::Sink>> viewer(1);
    LOOM_ASSIGN(viewer[0], core::tanhi_sink(options.tanhi));
    impl->grid.emplace(std::move(viewer), kPasses);
  }
  return Telemetry(std::move(impl));
}

void Telemetry::scalar(std::string_view tag, int64_t step, double value) {
  core::Record r = impl_->record(core::Record::Kind::scalar, tag, step);
  r.value = value;
  impl_->queue.push(std::move(r));
}

Status Telemetry::histogram(std::string_view tag, int64_t step, const Tensor& values) {
  LOOM_ASSIGN(const Tensor floats, values.to(DType::float32));
  core::Record r = impl_->record(core::Record::Kind::histogram, tag, step);
  if (!floats.empty()) {
    LOOM_ASSIGN(const std::span<const float> all, floats.values<float>());
    r.histogram = core::make_histogram(all);
  }
  impl_->queue.push(std::move(r));
  return {};
}

void Telemetry::picture(const Network& network) {
  const auto weights = network.impl().weights();
  // A failed trainer returns its error when its weights are requested.
  if (!weights.ok()) return;
  core::Record r = impl_->record(core::Record::Kind::picture, "network", 0);
  r.nodes = core::picture_of(**weights);
  if (impl_->grid) impl_->grid->push(r);
  impl_->queue.push(std::move(r));
}

void Telemetry::pass(const LayerPass& pass) {
  if (!impl_->grid) return;
  core::Record r;  // without a clock's time: it has its own
  r.kind = core::Record::Kind::pass;
  r.step = ++impl_->passes;
  r.pass = {{pass.at.z, pass.at.y, pass.at.x, pass.at.l},
            pass.type,
            pass.backward,
            pass.begin_ns,
            pass.end_ns,
            pass.shape};
  impl_->grid->push(std::move(r));
}

void Telemetry::begin_run(std::string_view label) {
  if (!impl_->grid) return;
  impl_->grid->push(impl_->record(core::Record::Kind::sweep, label, ++impl_->passes));
}

void Telemetry::epoch(const Epoch& e) {
  scalar("loss/train", e.number, e.train_loss);
  if (e.validation_loss) scalar("loss/validation", e.number, *e.validation_loss);
  if (e.validation_accuracy) scalar("accuracy/validation", e.number, *e.validation_accuracy);
  for (const Metric& m : e.validation_metrics) scalar("metrics/" + m.name, e.number, m.value);
  scalar("rate", e.number, e.rate);
  if (e.gradient_norm > 0) scalar("gradient_norm", e.number, e.gradient_norm);
  scalar("dropped_updates", e.number, static_cast<double>(e.dropped));
  scalar("samples_per_second", e.number, e.samples_per_second);
}

Status Telemetry::weights(int64_t step, const Network& network) {
  for (const ParameterInfo& p : network.parameters()) {
    LOOM_ASSIGN(const Tensor values, network.parameter(p.name));
    LOOM_TRY(histogram("weights/" + p.name, step, values));
  }
  return {};
}

int64_t Telemetry::dropped() const {
  return impl_->queue.dropped();
}

int64_t Telemetry::passes_dropped() const {
  return impl_->grid ? impl_->grid->dropped() : 0;
}

Status Telemetry::close(std::chrono::milliseconds most) {
  const Status grid = impl_->grid ? impl_->grid->close(most) : Status();
  Status rest = impl_->queue.close(most);
  return rest.ok() ? grid : rest;
}

}  // namespace loom
