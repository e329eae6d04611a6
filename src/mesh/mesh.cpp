#include "mesh/mesh.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "mesh/mesh_impl.hpp"

namespace loom::core {

void mesh_copy(const Tensor& from, const Tensor& to) {
  std::memcpy(to.data, from.data, static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
}

bool Mesh::Impl::steady() const {
  if (std::find(port_set.begin(), port_set.end(), false) != port_set.end()) return false;
  for (size_t k = 0; k < held.size(); ++k) {
    if (runs(k) && !held[k]) return false;
  }
  return true;
}

// Runs the commands of the slots that fire; adjacent slots form one run.
Status Mesh::Impl::run_parts(Tick& t, const std::vector<bool>& fires) {
  for (size_t k = 0; k < fires.size();) {
    size_t end = k;
    while (end < fires.size() && fires[end]) ++end;
    if (end > k) LOOM_TRY(t.program->recorder().run(t.starts[k], t.starts[end]));
    k = std::max(end, k + 1);
  }
  return {};
}

// Uploads port values that were set since the last tick.
Status Mesh::Impl::send_ports() {
  for (size_t p = 0; p < ports.size(); ++p) {
    if (port_changed[p]) LOOM_TRY(to_device(*ops, ports[p]));
    port_changed[p] = false;
  }
  return {};
}

Status Mesh::Impl::tick_once() {
  Tick& t = single[(ticks + 1) % 2];
  t.step.f32()[0] = static_cast<float>(ticks % (1 << 24));
  LOOM_TRY(to_device(*ops, t.step));
  LOOM_TRY(send_ports());
  const std::vector<bool> fires = topology.firing(port_set, held);
  LOOM_TRY(run_parts(t, fires));
  fired(fires);
  return {};
}

// Updates the state after one tick in which these slots fired.
void Mesh::Impl::fired(const std::vector<bool>& fires) {
  ++ticks;
  stale = 0;
  for (size_t k = 0; k < fires.size(); ++k) {
    if (fires[k] && !held[k]) first_tick[k] = ticks;
    held[k] = held[k] || fires[k];
    if (!fires[k] && !topology.slots()[k].delay) ++stale;
  }
}

// x: the values of port 0 for each tick; empty means its current value.
Status Mesh::Impl::fill_block(const Tensor& x) {
  for (size_t p = 0; p < ports.size(); ++p) {
    for (int64_t i = 0; i < block_ticks; ++i) {
      const Tensor to = part_of_tensor(block.x[p], i, ports[p].shape);
      mesh_copy(p == 0 && !x.empty() ? part_of_tensor(x, i, ports[0].shape) : ports[p], to);
    }
    block_changed[p] = false;
  }
  for (int64_t i = 0; i < block_ticks; ++i) {
    block.steps.f32()[i] = static_cast<float>((ticks + i) % (1 << 24));
  }
  return {};
}

Status Mesh::Impl::run_block(const Tensor& x) {
  LOOM_TRY(fill_block(x));
  LOOM_TRY(block.program->run());
  passed(block_ticks);
  return {};
}

// Updates the state after `count` ticks of a mesh in which every slot holds a value.
void Mesh::Impl::passed(int64_t count) {
  ticks += count;
  stale = 0;
  for (size_t k = 0; k < held.size(); ++k) {
    if (!held[k] && !topology.slots()[k].delay) ++stale;
  }
}

Mesh::Mesh(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mesh::Mesh(Mesh&&) noexcept = default;
Mesh& Mesh::operator=(Mesh&&) noexcept = default;
Mesh::~Mesh() = default;

Result<Mesh> Mesh::create(const Network& network, const GridSpec& grid, const MeshOptions& options,
                          const MeshRunOptions& run, const Ops& ops, ThreadPool& pool) {
  LOOM_TRY(network.check_loaded());
  if (run.block < -1 || run.block % 2 > 0) {
    return invalid(cat("a block of ", run.block, " ticks; give an even number, or 0 for none"));
  }
  auto impl = std::make_unique<Impl>();
  impl->network = &network;
  impl->ops = &ops;
  impl->pool = &pool;
  impl->run = run;
  LOOM_ASSIGN(impl->topology, MeshTopology::create(network, grid, options));
  LOOM_ASSIGN(impl->carrying, carrying_cells(impl->topology, network));
  LOOM_ASSIGN(impl->ropes, mesh_ropes(impl->topology, network));
  for (const GridNode& cell : network.cells()) LOOM_TRY(network.check_node(cell.node));
  impl->port_set.resize(impl->topology.ports().size());
  impl->port_changed.resize(impl->port_set.size());
  impl->block_changed.resize(impl->port_set.size());
  impl->held.resize(impl->topology.slots().size());
  impl->first_tick.resize(impl->held.size());
  LOOM_TRY(impl->make_memory());
  LOOM_TRY(impl->make_single(0));
  LOOM_TRY(impl->make_single(1));
  LOOM_TRY(impl->make_block());
  LOOM_TRY(impl->make_tape());
  return Mesh(std::move(impl));
}

const MeshTopology& Mesh::topology() const {
  return impl_->topology;
}

Status Mesh::set_input(const Tensor& x, int port) {
  Impl& s = *impl_;
  if (port < 0 || port >= static_cast<int>(s.ports.size())) {
    return invalid(cat("the mesh has ", s.ports.size(), " ports, no number ", port));
  }
  const Tensor& to = s.ports[static_cast<size_t>(port)];
  if (x.dtype != to.dtype || x.shape.count() != to.shape.count()) {
    return invalid(cat("the port '", s.topology.ports()[static_cast<size_t>(port)].name, "' takes ",
                       to.shape.str(), " in ", dtype_name(to.dtype), ", got ", x.shape.str(),
                       " in ", dtype_name(x.dtype)));
  }
  mesh_copy(x, to);
  const auto p = static_cast<size_t>(port);
  s.port_set[p] = s.port_changed[p] = s.block_changed[p] = true;
  return {};
}

Status Mesh::tick(int64_t count) {
  Impl& s = *impl_;
  const Gathering gathering(s.run.gather);
  for (int64_t done = 0; done < count;) {
    if (s.block_fits(count - done)) {
      LOOM_TRY(s.run_block({}));
      done += s.block_ticks;
      continue;
    }
    LOOM_TRY(s.tick_once());
    ++done;
  }
  return {};
}

Result<Tensor> Mesh::output(int slot) const {
  const Impl& s = *impl_;
  const Tensor& t = s.sides[s.ticks % 2][static_cast<size_t>(slot)];
  LOOM_TRY(to_host(*s.ops, {t}));
  return t;
}

bool Mesh::holds(int slot) const {
  return impl_->held[static_cast<size_t>(slot)];
}
int64_t Mesh::ticks() const {
  return impl_->ticks;
}
int64_t Mesh::stale() const {
  return impl_->stale;
}

Status Mesh::reset() {
  Impl& s = *impl_;
  std::memset(s.memory.data(), 0, static_cast<size_t>(s.memory.size()));
  s.ticks = s.stale = 0;
  s.held.assign(s.held.size(), false);
  s.port_set.assign(s.port_set.size(), false);
  s.port_changed.assign(s.port_set.size(), false);
  s.block_changed.assign(s.port_set.size(), true);
  s.first_tick.assign(s.held.size(), 0);
  return s.ops->device == nullptr ? Status{}
                                  : s.ops->device->upload(s.memory.data(), s.memory.size());
}

int64_t Mesh::bytes() const {
  const Impl& s = *impl_;
  int64_t bytes = s.memory.size() + s.tape.memory.size();
  for (const Impl::Tick& t : s.single) bytes += t.program->arena_bytes();
  return bytes + (s.block.program ? s.block.program->arena_bytes() : 0);
}

}  // namespace loom::core
