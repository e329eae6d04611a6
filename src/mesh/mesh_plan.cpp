// The allocations and recordings of create(): slots on two sides, one tick per side, a block of
// ticks, and the tape of a device.
#include <algorithm>

#include "base/numbers/checked.hpp"
#include "mesh/mesh_impl.hpp"

namespace loom::core {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kDeviceBlock = 32, kHostBlock = 8;
// Limits of a tape: enough to hide the transfer latency, and at most one download.
constexpr int64_t kTapeTicks = 1024, kTapeBytes = int64_t{4} << 20;

// Reorders commands from `begins.front()` on by their index within a slot. Those of different slots
// are independent, so fewer have to wait for each other. begins: the start of each slot, and the
// end.
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

// A tensor that needs an offset in a piece of memory.
struct MeshWish {
  Tensor* to;
  DType dtype;
  Shape shape;
  int64_t bytes() const { return round_up(plain_bytes(dtype, shape), kAlign); }
};

Result<Buffer> grant(const std::vector<MeshWish>& wishes, const Ops& ops) {
  int64_t total = 0;
  for (const MeshWish& w : wishes) total += w.bytes();
  LOOM_ASSIGN(Buffer memory, allocate_for(ops, total));
  std::byte* at = memory.data();
  for (const MeshWish& w : wishes) {
    *w.to = tensor_at(at, w.dtype, w.shape);
    at += w.bytes();
  }
  return memory;
}

}  // namespace

Status Mesh::Impl::make_memory() {
  const DType compute = ops->compute;
  const std::vector<MeshSlot>& all = topology.slots();
  ports.resize(topology.ports().size());
  states.resize(network->states().size());
  for (auto& side : sides) side.resize(all.size());
  std::vector<MeshWish> wishes;
  for (size_t p = 0; p < ports.size(); ++p) {
    const bool ids = topology.takes_ids(static_cast<int>(p));
    wishes.push_back({&ports[p], ids ? DType::i32 : compute, topology.ports()[p].shape});
  }
  int64_t largest = 1;
  for (size_t k = 0; k < all.size(); ++k) {
    for (auto& side : sides) wishes.push_back({&side[k], compute, all[k].out});
    largest = std::max(largest, all[k].in.count());
  }
  wishes.push_back({&zeros, compute, Shape{largest}});
  const int64_t batch = network->input()[0];
  for (size_t i = 0; i < states.size() && topology.options().carry; ++i) {
    const int64_t width = network->states()[i].width;
    if (width > 0) wishes.push_back({&states[i], compute, Shape{batch, width}});
  }
  LOOM_ASSIGN(memory, grant(wishes, *ops));
  const MemoryRange range = range_of(memory);
  LOOM_ASSIGN(attached, Attached::attach(ops->device, {&range, 1}, MemoryUse::state, true));
  return {};
}

Tensor Mesh::Impl::input_tensor(const MeshInput& input, const Places& p, const Shape& shape) const {
  const auto i = static_cast<size_t>(input.index);
  if (input.kind == MeshInput::Kind::port) return p.ports[i];
  if (input.kind == MeshInput::Kind::slot) return (*p.read)[i];
  return tensor_at(zeros.data, zeros.dtype, shape);
}

Status Mesh::Impl::record_slot(Trace& trace, const Places& p, size_t k) const {
  const MeshSlot& slot = topology.slots()[k];
  const Tensor in = input_tensor(slot.first, p, slot.in);
  const Tensor& to = (*p.write)[k];
  Recorder recorder(trace);
  if (slot.cell < 0) return recorder.unary({in, to});
  const size_t begin = trace.commands().size();
  const int64_t made = trace.tensors();
  CellCall call;
  call.network = network;
  call.ropes = &ropes;
  call.states = carrying[k] ? &states : nullptr;
  const auto first = p.ports.begin() + 1;
  const std::vector<Tensor> given(first, first + std::ssize(network->extra_inputs()));
  call.given = &given;
  call.step = p.step;
  const Tensor second = slot.two ? input_tensor(slot.second, p, slot.in) : in;
  LOOM_ASSIGN(const Tensor y, record_cell(trace, call, slot, in, second));
  // A whole tensor that this cell made is redirected to write the slot itself.
  const int64_t own = trace.find(y.data);
  const bool whole = own >= made && trace.tensor(own).data == y.data && y.dtype == to.dtype &&
                     trace.tensor(own).shape.count() == to.shape.count() &&
                     (y.row_stride == y.cols() || y.rows() == 1);
  if (!whole) return recorder.unary({y, to});
  redirect(trace, begin, trace.commands().size(), trace.tensor(own), to);
  return {};
}

// Records the mean of the absolute values that slot k commits.
Status Mesh::Impl::record_activity(Trace& trace, const Places& p, size_t k) const {
  if (p.activity.empty() || topology.slots()[k].delay) return {};
  const Tensor& slot = (*p.write)[k];
  const Tensor values = tensor_at(slot.data, slot.dtype, Shape{1, slot.shape.count()});
  const Tensor sizes = trace.fresh(values.shape);
  Recorder recorder(trace);
  LOOM_TRY(recorder.unary({values, sizes, UnaryKind::abs}));
  const Tensor mean = part_of_tensor(p.activity, static_cast<int64_t>(k), Shape{1});
  return recorder.reduce({sizes, mean, ReduceKind::mean});
}

Status Mesh::Impl::record_tick(Trace& trace, const Places& p, std::vector<size_t>& begins) const {
  begins.clear();
  for (size_t k = 0; k < topology.slots().size(); ++k) {
    begins.push_back(trace.commands().size());
    if (!runs(k)) continue;
    LOOM_TRY(record_slot(trace, p, k));
    LOOM_TRY(record_activity(trace, p, k));
  }
  begins.push_back(trace.commands().size());
  return {};
}

Status Mesh::Impl::make_single(int side) {
  Tick& t = single[side];
  Trace trace(ops->compute);
  t.step = trace.fresh(Shape{1}, DType::f32);
  std::vector<Tensor*> pins = {&t.step};
  if (run.activity) {
    t.activity = trace.fresh(Shape{slots()});
    pins.push_back(&t.activity);
  }
  const Places p{ports, &sides[1 - side], &sides[side], t.step, t.activity};
  std::vector<size_t> begins;
  LOOM_TRY(record_tick(trace, p, begins));
  // Real memory: a note only marks the final index of the commands of a slot.
  for (size_t k = 0; k < begins.size(); ++k) {
    trace.note_before(static_cast<int64_t>(begins[k]), zeros, static_cast<int64_t>(k));
  }
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
  block.y = trace.fresh(Shape{block_ticks, result().count()});
  block.steps = trace.fresh(Shape{block_ticks}, DType::f32);
  pins.push_back(&block.y);
  pins.push_back(&block.steps);
  if (run.activity) {
    block.activity = trace.fresh(Shape{block_ticks, slots()});
    pins.push_back(&block.activity);
  }
  std::vector<size_t> begins;
  for (int64_t i = 0; i < block_ticks; ++i) {
    const int side = i % 2 == 0 ? 1 : 0;
    Places p{{}, &sides[1 - side], &sides[side], part_of_tensor(block.steps, i, Shape{1}), {}};
    if (run.activity) p.activity = part_of_tensor(block.activity, i, Shape{slots()});
    for (size_t n = 0; n < ports.size(); ++n) {
      p.ports.push_back(part_of_tensor(block.x[n], i, ports[n].shape));
    }
    LOOM_TRY(record_tick(trace, p, begins));
    mesh_interleave(trace, begins);
    Recorder recorder(trace);
    LOOM_TRY(recorder.unary({sides[side][out], part_of_tensor(block.y, i, result())}));
  }
  LOOM_ASSIGN(Program program,
              Program::compile(std::move(trace), pins, *ops, *pool, run.activations));
  block.program = std::move(program);
  return {};
}

Status Mesh::Impl::make_tape() {
  if (ops->device == nullptr) return {};
  const int64_t active = run.activity ? slots() : 0;
  const int64_t values = ports[0].shape.count() + result().count() + active + 1;
  const int64_t fit = kTapeBytes / plain_bytes(DType::f32, Shape{values});
  const int64_t step = std::max<int64_t>(block_ticks, 2);
  tape.ticks = std::clamp(fit, step, kTapeTicks) / step * step;
  std::vector<MeshWish> wishes = {
      {&tape.steps, DType::f32, Shape{tape.ticks}},
      {&tape.x, ports[0].dtype, Shape{tape.ticks, ports[0].shape.count()}},
      {&tape.y, ops->compute, Shape{tape.ticks, result().count()}}};
  if (run.activity) wishes.push_back({&tape.activity, ops->compute, Shape{tape.ticks, slots()}});
  LOOM_ASSIGN(tape.memory, grant(wishes, *ops));
  const MemoryRange range = range_of(tape.memory);
  LOOM_ASSIGN(tape.attached, Attached::attach(ops->device, {&range, 1}, MemoryUse::scratch, false));
  return {};
}

}  // namespace loom::core
