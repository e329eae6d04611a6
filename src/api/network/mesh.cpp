// Mesh: a core mesh over a copy of the network's weights, for the requested number of streams.
#include "loom/mesh.hpp"

#include <algorithm>
#include <cstring>

#include "api/network/mesh_impl.hpp"
#include "base/text.hpp"
#include "mesh/mesh.hpp"

namespace loom::core {

Result<Network> mesh_network(const TrainedModel& model, const Network& weights, int64_t batch) {
  if (batch < 1) return invalid(cat("batch is ", batch, ", must be at least 1"));
  LOOM_ASSIGN(Network copy,
              Network::finalize(model.network.grid, model.network.input.after(batch)));
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const Param& from = weights.params()[i];
    const auto index = static_cast<int>(i);
    LOOM_TRY(weights.check_param(index));
    LOOM_TRY(copy.allocate_param(index, from.tensor.dtype));
    std::memcpy(copy.param(index).tensor.data, from.tensor.data, static_cast<size_t>(from.bytes()));
  }
  return copy;
}

Result<MeshOptions> mesh_options(const loom::MeshOptions& from) {
  const auto cell_at = [](const loom::Coord& c) { return Coord{c.z, c.y, c.x, c.l}; };
  MeshOptions o;
  o.zero_fill = from.zero_fill;
  o.carry = from.carry;
  for (const loom::MeshPort& port : from.ports) {
    LOOM_ASSIGN(const Shape shape, core_shape(port.shape, cat("the port '", port.name, "'")));
    o.ports.push_back({port.name, shape});
  }
  for (const loom::MeshLink& link : from.links) {
    const int sources = (link.from ? 1 : 0) + (link.port.empty() ? 0 : 1) + (link.nothing ? 1 : 0);
    if (sources > 1) {
      return invalid(cat("the link to cell ", cell_at(link.to).str(),
                         " has several sources; give a cell, a port or nothing"));
    }
    MeshLink mine{cell_at(link.to), MeshLink::From::as_is, {}, link.port, link.delay, link.second};
    if (link.nothing) mine.from = MeshLink::From::none;
    if (!link.port.empty()) mine.from = MeshLink::From::port;
    if (link.from) {
      mine.from = MeshLink::From::cell;
      mine.cell = cell_at(*link.from);
    }
    o.links.push_back(mine);
  }
  return o;
}

Result<loom::Tensor> port_values(const MeshTopology& topology, int port, const loom::Tensor& x) {
  const std::string what =
      cat("the port '", printable(topology.ports()[static_cast<size_t>(port)].name), "'");
  const int64_t limit = topology.ids_below(port);
  const bool numbers = x.dtype() == loom::DType::float32 || x.dtype() == loom::DType::float64;
  if (limit > 0 && numbers) return invalid(cat(what, " takes ids: give integers"));
  LOOM_ASSIGN(const loom::Tensor values,
              limit > 0 ? ids_below(limit, x, cat(what, ", value ")) : x.to(loom::DType::float32));
  return values.contiguous() ? values : values.copied();
}

namespace {

Coord mesh_coord(const loom::Coord& c) {
  return {c.z, c.y, c.x, c.l};
}

// A view of a contiguous public tensor.
Tensor mesh_view(const loom::Tensor& t) {
  Tensor view;
  view.dtype = static_cast<DType>(t.dtype());
  view.shape = Shape{t.size()};
  view.row_stride = t.size();
  view.data = const_cast<std::byte*>(t.data());
  return view;
}

}  // namespace
}  // namespace loom::core

namespace loom {

using core::cat;
using core::invalid;

struct Mesh::Impl {
  Engine engine;
  std::unique_ptr<core::Network> network;
  core::Normalization normalization;
  int64_t batch = 1;
  bool active = false;
  std::optional<core::Mesh> mesh;
  Tensor activity;

  // Converts `x` to the values of port `port`.
  Result<Tensor> prepared(const Tensor& x, int port) const;
  Result<Tensor> of_cells(const Tensor& slots) const;
  // The index of port `name`. Errors: invalid_argument, naming the ports.
  Result<int> port(std::string_view name) const;
  const core::MeshSlot& slot(int index) const {
    return mesh->topology().slots()[static_cast<size_t>(index)];
  }
};

// The columns of [ticks, slots] that are cells.
Result<Tensor> Mesh::Impl::of_cells(const Tensor& slots) const {
  const std::vector<core::MeshSlot>& all = mesh->topology().slots();
  const auto cells = std::count_if(all.begin(), all.end(), [](const auto& s) { return !s.delay; });
  const int64_t ticks = slots.shape()[0];
  LOOM_ASSIGN(Tensor made, Tensor::zeros({ticks, cells}));
  LOOM_ASSIGN(const std::span<float> to, made.mutable_values<float>());
  LOOM_ASSIGN(const std::span<const float> from, slots.values<float>());
  size_t next = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!all[i % all.size()].delay) to[next++] = from[i];
  }
  return made;
}

Result<Tensor> Mesh::Impl::prepared(const Tensor& x, int port) const {
  if (port == 0) return core::prepared_inputs(*network, normalization, x);
  return core::port_values(mesh->topology(), port, x);
}

Result<int> Mesh::Impl::port(std::string_view name) const {
  const int index = mesh->topology().port(std::string(name));
  if (index >= 0) return index;
  std::vector<std::string> names;
  for (const core::MeshPort& p : mesh->topology().ports()) names.push_back(core::printable(p.name));
  return invalid(
      cat("the mesh has no port '", core::printable(name), "'; it has ", core::join(names, ", ")));
}

Mesh::Mesh(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mesh::Mesh(Mesh&&) noexcept = default;
Mesh& Mesh::operator=(Mesh&&) noexcept = default;
Mesh::~Mesh() = default;

Result<Mesh> Mesh::create(const Network& network, const MeshOptions& options) {
  core::TrainedModel& model = network.impl().model;
  LOOM_ASSIGN(const std::shared_ptr<const core::Network> weights, network.impl().weights());
  LOOM_ASSIGN(core::Network copy, core::mesh_network(model, *weights, options.batch));
  LOOM_ASSIGN(const core::MeshOptions how, core::mesh_options(options));
  const Engine engine = options.engine.value_or(network.impl().engine);
  auto impl = std::make_unique<Impl>(Impl{engine,
                                          std::make_unique<core::Network>(std::move(copy)),
                                          model.normalization,
                                          options.batch,
                                          options.activity,
                                          {},
                                          {}});
  core::MeshRunOptions run;
  run.activity = options.activity;
#ifndef LOOM_WITHOUT_WEBGPU
  if (core::webgpu::Backend* gpu = engine.impl().gpu.get(); gpu != nullptr)
    run.gather = [gpu](bool on) { gpu->gather(on); };
#endif
  run.activations =
      options.quantize_activations ? engine.impl().activations : core::ActivationMode::f32;
  LOOM_ASSIGN(impl->mesh, core::Mesh::create(*impl->network, model.network.grid, how, run,
                                             *engine.impl().ops, engine.impl().pool));
  return Mesh(std::move(impl));
}

std::vector<MeshCell> Mesh::cells() const {
  std::vector<MeshCell> all;
  for (const core::MeshSlot& slot : impl_->mesh->topology().slots()) {
    if (slot.delay) continue;
    MeshCell& cell = all.emplace_back();
    cell.at = {slot.at.z, slot.at.y, slot.at.x, slot.at.l};
    if (slot.cell >= 0) {
      const auto& node = impl_->network->cells()[static_cast<size_t>(slot.cell)].node;
      cell.layer = std::string(node.config.def->name);
    }
    cell.output = core::public_shape(slot.out);
    cell.output.erase(cell.output.begin());
    cell.first_tick = slot.fill;
  }
  return all;
}

Status Mesh::set_input(const Tensor& x, std::string_view port) {
  LOOM_ASSIGN(const int index, impl_->port(port));
  const core::Shape& expected = impl_->mesh->topology().ports()[static_cast<size_t>(index)].shape;
  if (x.size() != expected.count()) {
    return invalid(
        cat("the port '", port, "' takes ", expected.str(), ", got ", shape_text(x.shape())));
  }
  LOOM_ASSIGN(const Tensor values, impl_->prepared(x, index));
  return impl_->mesh->set_input(core::mesh_view(values), index);
}

Status Mesh::tick(int64_t count) {
  if (count < 0) return invalid(cat(count, " ticks; give 0 or more"));
  const std::lock_guard turn(impl_->engine.impl().turn);
  return impl_->mesh->tick(count);
}

Result<Tensor> Mesh::push(const Tensor& x) {
  LOOM_TRY(set_input(x));
  LOOM_TRY(tick());
  return output();
}

Result<Tensor> Mesh::run(const Tensor& samples) {
  Impl& s = *impl_;
  const core::Shape& input = s.mesh->topology().ports()[0].shape;
  const int64_t ticks = samples.rank() > 0 ? samples.shape()[0] : 0;
  if (ticks < 1 || samples.size() != ticks * input.count()) {
    return invalid(cat("samples ", shape_text(samples.shape()), ": the mesh takes ", input.str(),
                       " per tick, with their number in front"));
  }
  LOOM_ASSIGN(const Tensor x, s.prepared(samples, 0));
  Shape shape = core::public_shape(s.slot(s.mesh->topology().output()).out);
  if (s.batch == 1) shape.erase(shape.begin());
  shape.insert(shape.begin(), ticks);
  LOOM_ASSIGN(Tensor y, Tensor::zeros(shape));
  LOOM_TRY(y.mutable_values<float>());
  const auto slots = static_cast<int64_t>(s.mesh->topology().slots().size());
  Tensor active;
  if (s.active) {
    LOOM_ASSIGN(active, Tensor::zeros({ticks, slots}));
    LOOM_TRY(active.mutable_values<float>());
  }
  const core::Tensor to = s.active ? core::mesh_view(active) : core::Tensor{};
  const std::lock_guard turn(s.engine.impl().turn);
  LOOM_TRY(s.mesh->stream(core::mesh_view(x), ticks, core::mesh_view(y), to));
  if (s.active) {
    LOOM_ASSIGN(s.activity, s.of_cells(active));
  }
  return y;
}

namespace {

// Sets row `row` of `all` to `one`; the first row creates `all`.
Status add_row(const Tensor& one, int64_t row, int64_t rows, Tensor& all) {
  if (row == 0) {
    Shape shape = one.shape();
    shape[0] = rows;
    LOOM_ASSIGN(all, Tensor::zeros(shape));
  }
  LOOM_ASSIGN(const std::span<float> to, all.mutable_values<float>());
  LOOM_ASSIGN(const std::span<const float> from, one.values<float>());
  std::copy(from.begin(), from.end(), to.begin() + row * one.size());
  return {};
}

}  // namespace

Result<Tensor> Mesh::run(const Tensor& samples, const std::vector<MeshSamples>& ports) {
  const int64_t ticks = samples.rank() > 0 ? samples.shape()[0] : 0;
  if (ports.empty() || ticks < 1) return run(samples);
  for (const MeshSamples& p : ports) {
    LOOM_ASSIGN(const int index, impl_->port(p.port));
    if (index == 0) return invalid("the port 'input' takes the samples of the stream itself");
    if (p.samples.rank() > 0 && p.samples.shape()[0] == ticks) continue;
    return invalid(cat("samples ", shape_text(p.samples.shape()), " for the port '",
                       core::printable(p.port), "'; give one for each of ", ticks, " ticks"));
  }
  Tensor all, active;
  for (int64_t t = 0; t < ticks; ++t) {
    for (const MeshSamples& p : ports) {
      LOOM_ASSIGN(const Tensor mine, p.samples.slice(t, 1));
      LOOM_TRY(set_input(mine, p.port));
    }
    LOOM_ASSIGN(const Tensor sample, samples.slice(t, 1));
    LOOM_ASSIGN(const Tensor y, run(sample));
    LOOM_TRY(add_row(y, t, ticks, all));
    if (impl_->active) LOOM_TRY(add_row(impl_->activity, t, ticks, active));
  }
  impl_->activity = active;
  return all;
}

const Tensor& Mesh::activity() const {
  return impl_->activity;
}

Result<Tensor> Mesh::output(std::optional<Coord> cell) const {
  const Impl& s = *impl_;
  int slot = s.mesh->topology().output();
  if (cell) {
    LOOM_ASSIGN(slot, s.mesh->topology().find(core::mesh_coord(*cell)));
  }
  const std::lock_guard turn(s.engine.impl().turn);
  LOOM_ASSIGN(const core::Tensor values, s.mesh->output(slot));
  LOOM_ASSIGN(Tensor y, Tensor::zeros(core::public_shape(s.slot(slot).out)));
  LOOM_ASSIGN(const std::span<float> to, y.mutable_values<float>());
  std::copy_n(values.f32(), to.size(), to.begin());
  return y;
}

bool Mesh::holds(const Coord& cell) const {
  const Result<int> slot = impl_->mesh->topology().find(core::mesh_coord(cell));
  return slot.ok() && impl_->mesh->holds(*slot);
}
int64_t Mesh::ticks() const {
  return impl_->mesh->ticks();
}
int64_t Mesh::stale() const {
  return impl_->mesh->stale();
}
int64_t Mesh::latency() const {
  return impl_->slot(impl_->mesh->topology().output()).fill;
}
Status Mesh::reset() {
  const std::lock_guard turn(impl_->engine.impl().turn);
  return impl_->mesh->reset();
}
int64_t Mesh::bytes() const {
  return impl_->mesh->bytes() + impl_->network->param_bytes();
}

}  // namespace loom
