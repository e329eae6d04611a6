#include "mesh/unroll.hpp"

#include <algorithm>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "mesh/record.hpp"
#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {
namespace {

// Records the ticks of one window.
class Unroller {
 public:
  Unroller(const MeshTopology& topology, const Network& network, Trace& trace,
           const UnrollOptions& options, Unrolled& u)
      : topology_(topology),
        network_(network),
        trace_(trace),
        recorder_(trace),
        options_(options),
        u_(u) {}

  Status begin(const MeshMemory& memory);
  Status tick(int64_t t);

 private:
  Result<Tensor> input(const MeshInput& in, int64_t t, const Shape& shape);
  Status cell(size_t k, int64_t t, Tensor& out);
  Status move_states(const Node& node, int64_t t, size_t begin, const Tensor& gate);
  Result<Tensor> gated(const Tensor& y, const Tensor& gate);
  Tensor gate_of(size_t k, int64_t t) const;

  const MeshTopology& topology_;
  const Network& network_;
  Trace& trace_;
  Recorder recorder_;
  const UnrollOptions& options_;
  Unrolled& u_;
  std::vector<bool> carrying_;
  std::vector<Tensor> given_;  // in this tick, per Network::extra_inputs()
};

Status Unroller::begin(const MeshMemory& memory) {
  LOOM_ASSIGN(carrying_, carrying_cells(topology_, network_));
  const std::vector<MeshSlot>& slots = topology_.slots();
  const int64_t ticks = options_.ticks;
  for (size_t p = 0; p < topology_.ports().size(); ++p) {
    const bool ids = topology_.takes_ids(static_cast<int>(p));
    const Shape shape{ticks, topology_.ports()[p].shape.count()};
    u_.x.push_back(trace_.fresh(shape, ids ? DType::i32 : trace_.compute()));
  }
  const bool gates = !topology_.options().zero_fill && topology_.fill() > 1;
  if (gates) u_.gates = trace_.fresh(Shape{ticks, static_cast<int64_t>(slots.size())});
  u_.step = trace_.fresh(Shape{1});
  const auto copies = [&](const std::vector<Tensor>& from, std::vector<Tensor>& to) -> Status {
    for (const Tensor& t : from) {
      Tensor& mine = to.emplace_back();
      if (t.empty()) continue;
      mine = trace_.fresh(t.shape);
      LOOM_TRY(recorder_.unary({t, mine}));
    }
    return {};
  };
  u_.slots.emplace_back();
  u_.states.emplace_back();
  LOOM_TRY(copies(memory.slots, u_.slots[0]));
  return copies(memory.states, u_.states[0]);
}

Result<Tensor> Unroller::input(const MeshInput& in, int64_t t, const Shape& shape) {
  const auto i = static_cast<size_t>(in.index);
  if (in.kind == MeshInput::Kind::port) return part_of_tensor(u_.x[i], t - 1, shape);
  if (in.kind == MeshInput::Kind::slot) return u_.slots[static_cast<size_t>(t) - 1][i];
  const Tensor zeros = trace_.fresh(shape);
  LOOM_TRY(recorder_.fill({zeros, 0.0f}));
  return zeros;
}

// Empty means that slot k fires in every tick of any window.
Tensor Unroller::gate_of(size_t k, int64_t t) const {
  if (u_.gates.empty() || topology_.slots()[k].fill <= 1) return {};
  const int64_t at = (t - 1) * static_cast<int64_t>(topology_.slots().size());
  return part_of_tensor(u_.gates, at + static_cast<int64_t>(k), Shape{1, 1});
}

Result<Tensor> Unroller::gated(const Tensor& y, const Tensor& gate) {
  if (gate.empty()) return y;
  const Tensor out = trace_.fresh(y.shape);
  LOOM_TRY(recorder_.binary({y, gate, out, BinaryKind::mul}));
  return out;
}

// Makes the states that a cell's layers wrote the states of this tick. A slot that never fired has
// zero states, and keeps them.
Status Unroller::move_states(const Node& node, int64_t t, size_t begin, const Tensor& gate) {
  const auto now = static_cast<size_t>(t);
  if (node.state >= 0 && !u_.states[now - 1][static_cast<size_t>(node.state)].empty()) {
    const auto i = static_cast<size_t>(node.state);
    const Tensor before = u_.states[now - 1][i];
    const Tensor after = trace_.fresh(before.shape);
    redirect(trace_, begin, trace_.commands().size(), before, after, true);
    LOOM_ASSIGN(u_.states[now][i], gated(after, gate));
  }
  for (const Node& child : node.children) {
    if (!child.disabled()) LOOM_TRY(move_states(child, t, begin, gate));
  }
  return {};
}

Status Unroller::cell(size_t k, int64_t t, Tensor& out) {
  const MeshSlot& slot = topology_.slots()[k];
  LOOM_ASSIGN(const Tensor in, input(slot.first, t, slot.in));
  if (slot.cell < 0) {
    out = in;
    return {};
  }
  Tensor second = in;
  if (slot.two) {
    LOOM_ASSIGN(second, input(slot.second, t, slot.in));
  }
  CellCall call;
  call.network = &network_;
  call.ropes = &u_.ropes;
  call.states = carrying_[k] ? &u_.states[static_cast<size_t>(t) - 1] : nullptr;
  call.given = &given_;
  call.training = options_.training;
  // Separate random numbers for every tick of a window.
  call.seed = options_.seed + static_cast<uint64_t>(t - 1) * 0x9E3779B97F4A7C15u;
  call.step = u_.step;
  const size_t begin = trace_.commands().size();
  const size_t kept = u_.extras.kept.size();
  LOOM_ASSIGN(const Tensor y, record_cell(trace_, call, slot, in, second, &u_.extras));
  const Tensor gate = gate_of(k, t);
  for (size_t i = kept; i < u_.extras.kept.size(); ++i) u_.extras.kept[i].gate = gate;
  if (carrying_[k]) {
    const Node& node = network_.cells()[static_cast<size_t>(slot.cell)].node;
    LOOM_TRY(move_states(node, t, begin, gate));
  }
  LOOM_ASSIGN(out, gated(y, gate));
  return {};
}

Status Unroller::tick(int64_t t) {
  u_.starts.push_back(static_cast<int64_t>(trace_.commands().size()));
  // Values that this tick does not write are unchanged.
  u_.slots.push_back(u_.slots.back());
  u_.states.push_back(u_.states.back());
  const auto now = static_cast<size_t>(t);
  given_.clear();
  for (size_t p = 1; p <= network_.extra_inputs().size(); ++p)
    given_.push_back(part_of_tensor(u_.x[p], t - 1, topology_.ports()[p].shape));
  for (size_t k = 0; k < topology_.slots().size(); ++k) {
    if (topology_.slots()[k].fill < 0) continue;
    Tensor out;
    LOOM_TRY(cell(k, t, out));
    u_.slots[now][k] = out;
  }
  return {};
}

}  // namespace

// The shapes of the slots, then of the states; rank 0 for states that are not carried.
std::vector<Shape> MeshMemory::shapes(const MeshTopology& topology, const Network& network) {
  std::vector<Shape> all;
  for (const MeshSlot& slot : topology.slots()) all.push_back(slot.out);
  for (const StateSpec& state : network.states()) {
    const bool kept = topology.options().carry && state.width > 0;
    all.push_back(kept ? Shape{network.input()[0], state.width} : Shape{});
  }
  return all;
}

Result<MeshMemory> MeshMemory::create(const MeshTopology& topology, const Network& network,
                                      const Ops& ops) {
  MeshMemory m;
  const std::vector<Shape> all = shapes(topology, network);
  const auto bytes = [&](const Shape& s) {
    return s.rank() > 0 ? round_up(plain_bytes(ops.compute, s), 64) : 0;
  };
  int64_t total = 0;
  for (const Shape& s : all) total += bytes(s);
  LOOM_ASSIGN(m.memory, allocate_for(ops, total));
  std::byte* at = m.memory.data();
  for (size_t i = 0; i < all.size(); ++i) {
    Tensor& t = (i < topology.slots().size() ? m.slots : m.states).emplace_back();
    if (all[i].rank() > 0) t = tensor_at(at, ops.compute, all[i]);
    at += bytes(all[i]);
  }
  return m;
}

MeshMemory MeshMemory::planned(const MeshTopology& topology, const Network& network, Trace& trace) {
  MeshMemory m;
  for (const Shape& shape : shapes(topology, network)) {
    Tensor& t = (m.slots.size() < topology.slots().size() ? m.slots : m.states).emplace_back();
    if (shape.rank() > 0) t = trace.fresh(shape);
  }
  return m;
}

Status MeshMemory::clear(const Ops& ops) const {
  std::memset(memory.data(), 0, static_cast<size_t>(memory.size()));
  if (ops.device == nullptr || memory.size() == 0) return {};
  return ops.device->upload(memory.data(), memory.size());
}

Result<Unrolled> unroll(const MeshTopology& topology, const Network& network,
                        const MeshMemory& begin, Trace& trace, const UnrollOptions& options) {
  if (options.ticks < 1) {
    return invalid(cat("a window of ", options.ticks, " ticks; give at least 1"));
  }
  LOOM_TRY(network.check_loaded());
  Unrolled u;
  LOOM_ASSIGN(u.ropes, mesh_ropes(topology, network));
  Unroller unroller(topology, network, trace, options, u);
  LOOM_TRY(unroller.begin(begin));
  for (int64_t t = 1; t <= options.ticks; ++t) LOOM_TRY(unroller.tick(t));
  return u;
}

void fill_gates(const MeshTopology& topology, std::vector<bool>& held, int64_t ticks,
                int64_t stride, float* gates) {
  const std::vector<bool> ports(topology.ports().size(), true);
  std::vector<bool> now = held;
  for (int64_t t = 1; t <= ticks; ++t) {
    const std::vector<bool> fires = topology.firing(ports, now);
    for (size_t k = 0; k < fires.size(); ++k) {
      now[k] = now[k] || fires[k];
      if (gates != nullptr) *gates++ = fires[k] ? 1.0f : 0.0f;
    }
    if (t == stride) held = now;
  }
}

}  // namespace loom::core
