#include "mesh/mesh_trainer.hpp"

#include <algorithm>

#include "base/memory_budget.hpp"
#include "base/text.hpp"
#include "learn/rules/tick_signals.hpp"
#include "mesh/unroll.hpp"

namespace loom::core {

namespace {

void add_params(const Node& node, std::vector<int>& params) {
  if (node.disabled()) return;
  params.insert(params.end(), node.params.begin(), node.params.end());
  for (const Node& child : node.children) add_params(child, params);
}

// The properties of the slots that rules use.
TickPass tick_pass(const Network& network, const MeshTopology& topology, size_t output) {
  TickPass pass;
  pass.output = static_cast<int>(output);
  pass.slots.resize(topology.slots().size());
  const auto reads = [&](const MeshInput& input, size_t reader) {
    if (input.kind != MeshInput::Kind::slot) return;
    std::vector<int>& readers = pass.slots[static_cast<size_t>(input.index)].readers;
    const auto j = static_cast<int>(reader);
    if (readers.empty() || readers.back() != j) readers.push_back(j);
  };
  for (size_t k = 0; k < pass.slots.size(); ++k) {
    const MeshSlot& from = topology.slots()[k];
    TickSlot& slot = pass.slots[k];
    slot.name = from.str();
    slot.identity = from.cell < 0;
    slot.out = from.out;
    slot.fill = from.fill;
    reads(from.first, k);
    if (from.two) reads(from.second, k);
    for (size_t i = 0; i < network.cells().size(); ++i) {
      if (network.cells()[i].at == from.at) slot.cell = i;
    }
    if (slot.identity) continue;
    const Node& node = network.cells()[slot.cell].node;
    add_params(node, slot.params);
    if (node.config.def->name == "Dense") slot.dense = node.params[0];
  }
  return pass;
}

}  // namespace

struct MeshTrainer::Impl {
  const Network* network = nullptr;
  const Ops* ops = nullptr;
  MeshTopology topology;
  MeshTrainOptions options;
  size_t output = 0;  // slot
  MeshMemory memory;  // state at the start of the window
  Attached attached;
  TickPass pass;    // its slots, as rules see them
  Unrolled window;  // the last recording; its tensors are then only names
  std::optional<TrainStep> step;
  std::vector<bool> held;
  int64_t position = 0;
  bool planning = false;

  Status begin(const Network& net, const GridSpec& grid, const MeshOptions& mesh,
               const MeshTrainOptions& train, const Ops& on);
  TrainStepOptions step_options();
  Result<TracedNetwork> record(Trace& trace, const TraceOptions& o);
  Status keep(Recorder& recorder) const;
};

Status MeshTrainer::Impl::begin(const Network& net, const GridSpec& grid, const MeshOptions& mesh,
                                const MeshTrainOptions& train, const Ops& on) {
  network = &net;
  ops = &on;
  options = train;
  if (options.window < 1) {
    return invalid(cat("a window of ", options.window, " ticks; give at least 1"));
  }
  if (options.stride == 0) options.stride = options.window;
  if (options.stride < 1 || options.stride > options.window) {
    return invalid(
        cat("a stride of ", options.stride, " ticks; give 1 to the window of ", options.window));
  }
  LOOM_ASSIGN(topology, MeshTopology::create(net, grid, mesh));
  int out = topology.output();
  if (options.output.has_value()) {
    LOOM_ASSIGN(out, topology.find(*options.output));
  }
  output = static_cast<size_t>(out);
  const MeshSlot& slot = topology.slots()[output];
  if (slot.fill < 0) {
    return invalid(cat(slot.str(), " is to be trained, but nothing ever reaches it"));
  }
  held.assign(topology.slots().size(), false);
  pass = tick_pass(net, topology, output);
  pass.steady = options.steady;
  pass.values.resize(static_cast<size_t>(options.window) + 1);
  return {};
}

TrainStepOptions MeshTrainer::Impl::step_options() {
  TrainStepOptions o = options.step;
  o.carry_feedback = false;
  o.forward = [this](Trace& trace, const TraceOptions& t) { return record(trace, t); };
  o.ticks = &pass;
  o.finish = [this](const TracedNetwork&, Recorder& recorder) { return keep(recorder); };
  return o;
}

Result<TracedNetwork> MeshTrainer::Impl::record(Trace& trace, const TraceOptions& o) {
  UnrollOptions u;
  u.ticks = options.window;
  u.training = o.training;
  u.seed = o.seed;
  if (planning) memory = MeshMemory::planned(topology, *network, trace);
  LOOM_ASSIGN(window, unroll(topology, *network, memory, trace, u));
  pass.values = window.slots;
  TracedNetwork t;
  t.x = window.x[0];
  t.step = window.step;
  t.more.assign(window.x.begin() + 1, window.x.end());
  if (!window.gates.empty()) t.more.push_back(window.gates);
  t.losses = window.extras.losses;
  t.kept = window.extras.kept;
  t.starts = window.starts;
  const Shape& one = topology.slots()[output].out;
  t.y = trace.fresh(Shape{options.window * one.rows(), one.last()});
  Recorder recorder(trace);
  for (int64_t i = 0; i < options.window; ++i) {
    const Tensor part = t.y.slice_rows(i * one.rows(), one.rows());
    const Tensor& from = window.slots[static_cast<size_t>(i) + 1][output];
    LOOM_TRY(recorder.unary({as_matrix(from, one.rows(), one.last()), part}));
  }
  return t;
}

// Saves the state for the start of the next window.
Status MeshTrainer::Impl::keep(Recorder& recorder) const {
  const auto at = static_cast<size_t>(options.stride);
  const auto copy = [&](const std::vector<Tensor>& from, const std::vector<Tensor>& first,
                        const std::vector<Tensor>& to) -> Status {
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].empty() || from[i].data == first[i].data) continue;
      LOOM_TRY(recorder.unary({from[i], to[i]}));
    }
    return {};
  };
  LOOM_TRY(copy(window.slots[at], window.slots[0], memory.slots));
  return copy(window.states[at], window.states[0], memory.states);
}

Result<int64_t> MeshTrainer::planned_bytes(const Network& network, const GridSpec& grid,
                                           const MeshOptions& options,
                                           const MeshTrainOptions& train, const Ops& ops) {
  Impl impl;
  impl.planning = true;
  LOOM_TRY(impl.begin(network, grid, options, train, ops));
  return TrainStep::planned_bytes(network, impl.step_options(), ops);
}

Result<MeshTrainer> MeshTrainer::create(Network& network, const GridSpec& grid,
                                        const MeshOptions& options, const MeshTrainOptions& train,
                                        const Ops& ops, ThreadPool& pool) {
  if (train.budget > 0) {
    LOOM_ASSIGN(const int64_t bytes, planned_bytes(network, grid, options, train, ops));
    if (static_cast<uint64_t>(bytes) > train.budget) {
      return make_error(Code::out_of_memory,
                        cat("back-propagation through ", train.window, " ticks takes ",
                            size_text(static_cast<uint64_t>(bytes)), ", and the budget is ",
                            size_text(train.budget), "; take fewer ticks or a larger budget"));
    }
  }
  auto impl = std::make_unique<Impl>();
  LOOM_TRY(impl->begin(network, grid, options, train, ops));
  LOOM_ASSIGN(impl->memory, MeshMemory::create(impl->topology, network, ops));
  const MemoryRange range = range_of(impl->memory.memory);
  LOOM_ASSIGN(impl->attached, Attached::attach(ops.device, {&range, 1}, MemoryUse::state, true));
  LOOM_ASSIGN(impl->step, TrainStep::create(network, impl->step_options(), ops, pool));
  return MeshTrainer(std::move(impl));
}

MeshTrainer::MeshTrainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeshTrainer::MeshTrainer(MeshTrainer&&) noexcept = default;
MeshTrainer& MeshTrainer::operator=(MeshTrainer&&) noexcept = default;
MeshTrainer::~MeshTrainer() = default;

const MeshTopology& MeshTrainer::topology() const {
  return impl_->topology;
}
int64_t MeshTrainer::window() const {
  return impl_->options.window;
}
int64_t MeshTrainer::stride() const {
  return impl_->options.stride;
}
int64_t MeshTrainer::lag() const {
  return impl_->topology.slots()[impl_->output].fill - 1;
}
const Tensor& MeshTrainer::x(int port) const {
  const TrainStep& step = *impl_->step;
  return port == 0 ? step.x() : step.more()[static_cast<size_t>(port) - 1];
}
const Tensor& MeshTrainer::target() const {
  return impl_->step->target();
}
const Tensor& MeshTrainer::weight() const {
  return impl_->step->weight();
}
const Tensor& MeshTrainer::y() const {
  return impl_->step->y();
}
int64_t MeshTrainer::rows() const {
  return impl_->topology.slots()[impl_->output].out.rows();
}
int64_t MeshTrainer::position() const {
  return impl_->position;
}
TrainStep& MeshTrainer::step() {
  return *impl_->step;
}
int64_t MeshTrainer::bytes() const {
  return impl_->step->arena_bytes() + impl_->step->state_bytes() + impl_->memory.memory.size();
}

Result<StepResult> MeshTrainer::run(double learning_rate) {
  Impl& s = *impl_;
  float* gates = s.window.gates.empty() ? nullptr : s.step->more().back().f32();
  fill_gates(s.topology, s.held, s.options.window, s.options.stride, gates);
  LOOM_ASSIGN(const StepResult result, s.step->run(learning_rate));
  s.position += s.options.stride;
  if (!result.finite) LOOM_TRY(reset());
  return result;
}

Status MeshTrainer::reset() {
  Impl& s = *impl_;
  s.held.assign(s.held.size(), false);
  s.position = 0;
  return s.memory.clear(*s.ops);
}

}  // namespace loom::core
