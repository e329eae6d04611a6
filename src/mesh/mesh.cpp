#include "mesh/mesh.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.hpp"
#include "base/text.hpp"
#include "mesh/record.hpp"
#include "ops/program.hpp"

namespace loom::core {

struct Mesh::Impl {
  const Network* network = nullptr;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  MeshRunOptions run;
  MeshTopology topology;
  std::vector<bool> carrying;
  std::vector<RopeTable> ropes;

  Buffer memory;  // of all that follows
  std::vector<Tensor> ports, states;
  std::vector<Tensor> sides[2];  // per slot
  Tensor zeros;                  // as large as the largest input of a cell
  Attached attached;

  // A recording of one tick, which writes sides[i]; commands of slot k begin at starts[k].
  struct Tick {
    std::optional<Program> program;
    Tensor step;
    std::vector<int64_t> starts;
  };
  Tick single[2];
  // Of `block` ticks, the first of which writes sides[1].
  struct Block {
    std::optional<Program> program;
    std::vector<Tensor> x;  // per port: [block, port]
    Tensor y, steps;        // [block, output], [block]
  } block;
  int64_t block_ticks = 0;

  int64_t ticks = 0, stale = 0;
  std::vector<bool> port_set, held;

  // What one recorded tick works on.
  struct Places {
    std::vector<Tensor> ports;
    const std::vector<Tensor>* read = nullptr;
    const std::vector<Tensor>* write = nullptr;
    Tensor step;
  };
  bool runs(size_t slot) const { return topology.slots()[slot].fill >= 0; }
  Status make_memory();
  Tensor place(const MeshInput& input, const Places& p, const Shape& shape) const;
  Status record_slot(Trace& trace, const Places& p, size_t k) const;
  Status record_tick(Trace& trace, const Places& p, std::vector<size_t>& begins) const;
  Status make_single(int side);
  Status make_block();
  bool steady() const;
  Status tick_once();
  Status run_parts(Tick& t, const std::vector<bool>& fires);
  Status run_block(const Tensor& x, const Tensor& y);
};

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kDeviceBlock = 32, kHostBlock = 8;

// Commands from `begins.front()` on, by their place inside of a slot: those of different slots are
// independent, so fewer have to wait for each other. begins: of each slot, and behind the last.
void mesh_interleave(Trace& trace, const std::vector<size_t>& begins) {
  std::vector<Command>& all = trace.commands();
  size_t longest = 0;
  for (size_t k = 0; k + 1 < begins.size(); ++k) {
    longest = std::max(longest, begins[k + 1] - begins[k]);
  }
  std::vector<Command> ordered;
  ordered.reserve(all.size() - begins.front());
  for (size_t i = 0; i < longest; ++i) {
    for (size_t k = 0; k + 1 < begins.size(); ++k) {
      if (begins[k] + i < begins[k + 1]) ordered.push_back(all[begins[k] + i]);
    }
  }
  std::copy(ordered.begin(), ordered.end(), all.begin() + static_cast<ptrdiff_t>(begins.front()));
}

void mesh_copy(const Tensor& from, const Tensor& to) {
  std::memcpy(to.data, from.data, static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
}

}  // namespace

Status Mesh::Impl::make_memory() {
  const DType compute = ops->compute;
  struct Wish {
    Tensor* to;
    DType dtype;
    Shape shape;
  };
  const std::vector<MeshSlot>& slots = topology.slots();
  ports.resize(topology.ports().size());
  states.resize(network->states().size());
  for (auto& side : sides) side.resize(slots.size());
  std::vector<Wish> wishes;
  for (size_t p = 0; p < ports.size(); ++p) {
    const bool ids = topology.takes_ids(static_cast<int>(p));
    wishes.push_back({&ports[p], ids ? DType::i32 : compute, topology.ports()[p].shape});
  }
  int64_t largest = 1;
  for (size_t k = 0; k < slots.size(); ++k) {
    for (auto& side : sides) wishes.push_back({&side[k], compute, slots[k].out});
    largest = std::max(largest, slots[k].in.count());
  }
  wishes.push_back({&zeros, compute, Shape{largest}});
  const int64_t batch = network->input()[0];
  for (size_t i = 0; i < states.size() && topology.options().carry; ++i) {
    const int64_t width = network->states()[i].width;
    if (width > 0) wishes.push_back({&states[i], compute, Shape{batch, width}});
  }
  int64_t total = 0;
  for (const Wish& w : wishes) total += round_up(plain_bytes(w.dtype, w.shape), kAlign);
  LOOM_ASSIGN(memory, allocate_for(*ops, total));
  std::byte* at = memory.data();
  for (const Wish& w : wishes) {
    *w.to = tensor_at(at, w.dtype, w.shape);
    at += round_up(plain_bytes(w.dtype, w.shape), kAlign);
  }
  const MemoryRange range = range_of(memory);
  LOOM_ASSIGN(attached, Attached::attach(ops->device, {&range, 1}, MemoryUse::state, true));
  return {};
}

Tensor Mesh::Impl::place(const MeshInput& input, const Places& p, const Shape& shape) const {
  const auto i = static_cast<size_t>(input.index);
  if (input.kind == MeshInput::Kind::port) return p.ports[i];
  if (input.kind == MeshInput::Kind::slot) return (*p.read)[i];
  return tensor_at(zeros.data, zeros.dtype, shape);
}

Status Mesh::Impl::record_slot(Trace& trace, const Places& p, size_t k) const {
  const MeshSlot& slot = topology.slots()[k];
  const Tensor in = place(slot.first, p, slot.in);
  const Tensor& to = (*p.write)[k];
  Recorder recorder(trace);
  if (slot.cell < 0) return recorder.unary({in, to});
  const size_t begin = trace.commands().size();
  const int64_t made = trace.tensors();
  CellCall call;
  call.network = network;
  call.ropes = &ropes;
  call.states = carrying[k] ? &states : nullptr;
  call.step = p.step;
  const Tensor second = slot.two ? place(slot.second, p, slot.in) : in;
  LOOM_ASSIGN(const Tensor y, record_cell(trace, call, slot, in, second));
  // A whole tensor of this cell's own is written to the slot itself.
  const int64_t own = trace.find(y.data);
  const bool whole = own >= made && trace.tensor(own).data == y.data && y.dtype == to.dtype &&
                     trace.tensor(own).shape.count() == to.shape.count() &&
                     (y.row_stride == y.cols() || y.rows() == 1);
  if (!whole) return recorder.unary({y, to});
  redirect(trace, begin, trace.commands().size(), trace.tensor(own), to);
  return {};
}

Status Mesh::Impl::record_tick(Trace& trace, const Places& p, std::vector<size_t>& begins) const {
  begins.clear();
  for (size_t k = 0; k < topology.slots().size(); ++k) {
    begins.push_back(trace.commands().size());
    if (runs(k)) LOOM_TRY(record_slot(trace, p, k));
  }
  begins.push_back(trace.commands().size());
  return {};
}

Status Mesh::Impl::make_single(int side) {
  Tick& t = single[side];
  Trace trace(ops->compute);
  t.step = trace.fresh(Shape{1}, DType::f32);
  const Places p{ports, &sides[1 - side], &sides[side], t.step};
  std::vector<size_t> begins;
  LOOM_TRY(record_tick(trace, p, begins));
  // Real memory: a note only says where the commands of a slot come to stand.
  for (size_t k = 0; k < begins.size(); ++k) {
    trace.note_before(static_cast<int64_t>(begins[k]), zeros, static_cast<int64_t>(k));
  }
  Tensor* pins[] = {&t.step};
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), pins, *ops, *pool, run.activations));
  t.program = std::move(program);
  for (const Note& note : t.program->notes()) t.starts.push_back(note.command);
  return {};
}

Status Mesh::Impl::make_block() {
  block_ticks = run.block >= 0 ? run.block : (ops->device != nullptr ? kDeviceBlock : kHostBlock);
  if (block_ticks == 0) return {};
  Trace trace(ops->compute);
  std::vector<Tensor*> pins;
  for (size_t p = 0; p < ports.size(); ++p) {
    const Shape& shape = ports[p].shape;
    block.x.push_back(trace.fresh(Shape{block_ticks, shape.count()}, ports[p].dtype));
  }
  for (Tensor& x : block.x) pins.push_back(&x);
  const auto out = static_cast<size_t>(topology.output());
  const Shape& result = topology.slots()[out].out;
  block.y = trace.fresh(Shape{block_ticks, result.count()});
  block.steps = trace.fresh(Shape{block_ticks}, DType::f32);
  pins.push_back(&block.y);
  pins.push_back(&block.steps);
  std::vector<size_t> begins;
  for (int64_t i = 0; i < block_ticks; ++i) {
    const int side = i % 2 == 0 ? 1 : 0;
    Places p{{}, &sides[1 - side], &sides[side], part_of_tensor(block.steps, i, Shape{1})};
    for (size_t n = 0; n < ports.size(); ++n) {
      p.ports.push_back(part_of_tensor(block.x[n], i, ports[n].shape));
    }
    LOOM_TRY(record_tick(trace, p, begins));
    mesh_interleave(trace, begins);
    Recorder recorder(trace);
    LOOM_TRY(recorder.unary({sides[side][out], part_of_tensor(block.y, i, result)}));
  }
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), pins, *ops, *pool, run.activations));
  block.program = std::move(program);
  return {};
}

bool Mesh::Impl::steady() const {
  if (std::find(port_set.begin(), port_set.end(), false) != port_set.end()) return false;
  for (size_t k = 0; k < held.size(); ++k) {
    if (runs(k) && !held[k]) return false;
  }
  return true;
}

// The commands of the slots that fire, neighbours together.
Status Mesh::Impl::run_parts(Tick& t, const std::vector<bool>& fires) {
  for (size_t k = 0; k < fires.size();) {
    size_t end = k;
    while (end < fires.size() && fires[end]) ++end;
    if (end > k) LOOM_TRY(t.program->recorder().run(t.starts[k], t.starts[end]));
    k = std::max(end, k + 1);
  }
  return {};
}

Status Mesh::Impl::tick_once() {
  Tick& t = single[(ticks + 1) % 2];
  t.step.f32()[0] = static_cast<float>(ticks % (1 << 24));
  LOOM_TRY(to_device(*ops, t.step));
  const std::vector<bool> fires = topology.firing(port_set, held);
  LOOM_TRY(run_parts(t, fires));
  ++ticks;
  stale = 0;
  for (size_t k = 0; k < fires.size(); ++k) {
    held[k] = held[k] || fires[k];
    if (!fires[k] && !topology.slots()[k].delay) ++stale;
  }
  return {};
}

// x: what port 0 offers in each tick; empty: what it holds.
Status Mesh::Impl::run_block(const Tensor& x, const Tensor& y) {
  for (size_t p = 0; p < ports.size(); ++p) {
    for (int64_t i = 0; i < block_ticks; ++i) {
      const Tensor to = part_of_tensor(block.x[p], i, ports[p].shape);
      mesh_copy(p == 0 && !x.empty() ? part_of_tensor(x, i, ports[0].shape) : ports[p], to);
    }
  }
  for (int64_t i = 0; i < block_ticks; ++i) {
    block.steps.f32()[i] = static_cast<float>((ticks + i) % (1 << 24));
  }
  LOOM_TRY(block.program->run());
  ticks += block_ticks;
  stale = 0;
  for (size_t k = 0; k < held.size(); ++k) {
    if (!held[k] && !topology.slots()[k].delay) ++stale;
  }
  if (y.empty()) return {};
  LOOM_TRY(to_host(*ops, {block.y}));
  mesh_copy(block.y, tensor_at(y.data, y.dtype, block.y.shape));
  return {};
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
  impl->held.resize(impl->topology.slots().size());
  LOOM_TRY(impl->make_memory());
  LOOM_TRY(impl->make_single(0));
  LOOM_TRY(impl->make_single(1));
  LOOM_TRY(impl->make_block());
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
  s.port_set[static_cast<size_t>(port)] = true;
  return to_device(*s.ops, to);
}

Status Mesh::tick(int64_t count) {
  Impl& s = *impl_;
  for (int64_t done = 0; done < count;) {
    if (s.block.program && s.ticks % 2 == 0 && count - done >= s.block_ticks && s.steady()) {
      LOOM_TRY(s.run_block({}, {}));
      done += s.block_ticks;
      continue;
    }
    LOOM_TRY(s.tick_once());
    ++done;
  }
  return {};
}

Status Mesh::stream(const Tensor& x, int64_t count, const Tensor& y) {
  Impl& s = *impl_;
  const auto out = static_cast<size_t>(s.topology.output());
  const Shape& result = s.topology.slots()[out].out;
  const Shape& input = s.ports[0].shape;
  if (x.shape.count() != count * input.count() ||
      (!y.empty() && y.shape.count() != count * result.count())) {
    return invalid(cat(count, " ticks take ", input.after(count).str(), " and give ",
                       result.after(count).str(), "; got ", x.shape.str(), " and ", y.shape.str()));
  }
  for (int64_t done = 0; done < count;) {
    const Tensor mine = part_of_tensor(x, done, input);
    const Tensor to = y.empty() ? Tensor{} : part_of_tensor(y, done, result);
    if (s.block.program && s.ticks % 2 == 0 && count - done >= s.block_ticks && s.steady()) {
      LOOM_TRY(s.run_block(mine, to));
      done += s.block_ticks;
      LOOM_TRY(set_input(part_of_tensor(x, done - 1, input)));
      continue;
    }
    LOOM_TRY(set_input(mine));
    LOOM_TRY(s.tick_once());
    if (!to.empty()) {
      LOOM_ASSIGN(const Tensor now, output(static_cast<int>(out)));
      mesh_copy(now, to);
    }
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
  return s.ops->device == nullptr ? Status{}
                                  : s.ops->device->upload(s.memory.data(), s.memory.size());
}

int64_t Mesh::bytes() const {
  const Impl& s = *impl_;
  int64_t bytes = s.memory.size();
  for (const Impl::Tick& t : s.single) bytes += t.program->arena_bytes();
  return bytes + (s.block.program ? s.block.program->arena_bytes() : 0);
}

}  // namespace loom::core
