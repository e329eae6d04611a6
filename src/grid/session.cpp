// The forward driver. Memory is planned once, from a trace of the largest input. A pass then
// requests its tensors in the same order and gets the planned offsets.
#include "grid/session.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "grid/session_impl.hpp"
#include "grid/traced.hpp"
#include "ops/recording/reserve.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {

namespace {

// The maximum number of fused commands: a norm, three products, and an epilogue.
constexpr int64_t kFusedCommands = 5;

// Offsets are assigned in the order of the plan. A layer that requested more or fewer tensors for a
// shorter input would get memory of another use (layers/core/layer.hpp).
Error broken_plan() {
  return make_error(Code::internal,
                    "the memory planned for this network does not fit an input of this length; "
                    "please report the network");
}

}  // namespace

Pass Session::Impl::pass() {
  Pass p;
  p.network = network;
  p.recorder = recorder.get();
  p.tensor = [this](const Shape& shape) { return next_tensor(shape); };
  p.ropes = &ropes;
  p.sequences = options.ragged ? 1 : options.sequences;
  p.first = options.ragged ? 0 : position;
  if (ragged) {
    p.row_positions = ragged->row_positions;
    p.step_order = ragged->step_order;
  }
  if (masked) {
    p.mask = masked->mask;
    p.ends = masked->ends;
  }
  p.stateful = !options.masked;
  p.caches = &caches;
  p.states = &states;
  p.feedback = &feedback.tensors();
  p.given = &received_inputs;
  // Recorded lists that are kept, and device lists, run only when they are complete.
  if (!options.ragged && recorder->ops().device == nullptr)
    p.synchronize = [this]() -> Result<bool> {
      LOOM_TRY(recorder->flush());
      return true;
    };
  p.on_cell = [this](size_t cell) {
    next_slot = first_slot[cell];
    end_slot = first_slot[cell + 1];
  };
  p.on_output = [this](size_t, const Tensor&) { misplaced = misplaced || next_slot != end_slot; };
  return p;
}

Result<Tensor> Session::Impl::next_tensor(const Shape& shape) {
  const DType dtype = recorder->ops().compute;
  const int slot = next_slot++;
  misplaced = misplaced || slot >= end_slot;
  if (misplaced) return broken_plan();
  if (plain_bytes(dtype, shape) > plan.bytes(slot)) {
    return invalid(cat("a tensor ", shape.str(),
                       " does not fit the session, which was made for inputs up to ",
                       max_input.str()));
  }
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = arena.data() + plan.offset(slot);
  return t;
}

Status Session::Impl::check_params(size_t first, size_t last) {
  for (size_t cell = first; cell < last; ++cell) {
    if (checked[cell]) continue;
    LOOM_TRY(network->check_node(network->cells()[cell].node));
    checked[cell] = true;
  }
  return {};
}

Status Session::Impl::plan_memory() {
  Trace trace(recorder->ops().compute);
  Recorder tracer(trace);
  Pass p = pass();
  p.recorder = &tracer;
  if (p.synchronize) p.synchronize = [] { return Result<bool>(false); };
  p.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  p.on_cell = [&](size_t) { first_slot.push_back(static_cast<int>(trace.tensors())); };
  p.on_output = {};
  // The first tensors are inputs, which the caller owns: they use no bytes.
  const bool ids = takes_ids(network->cells()[0].node.config);
  Tensor value = trace.fresh(max_input, ids ? DType::i32 : trace.compute());
  std::vector<Tensor> traced;
  for (const InputSpec& spec : network->extra_inputs())
    traced.push_back(trace.fresh(spec.batch(max_input[0]), spec.dtype(trace.compute())));
  p.given = &traced;
  std::vector<Tensor> outputs;
  p.results = &results;
  p.outputs = network->has_links() ? &outputs : nullptr;
  const size_t cells = network->cells().size();
  const size_t narrow = options.logits_from_cell > 0 ? options.logits_from_cell : cells;
  LOOM_ASSIGN(value, p.run(0, narrow, value));
  // Tensors that are read after the pass.
  std::vector<int64_t> kept = {trace.find(value.data)};
  if (narrow < cells) {
    const int64_t rows = std::min(options.num_logits_rows, value.rows());
    LOOM_ASSIGN(value, p.run(narrow, cells, value.slice_rows(0, rows)));
    kept.push_back(trace.find(value.data));
  }
  for (const Tensor& result : results) kept.push_back(trace.find(result.data));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!feedback.empty() && !feedback.tensors()[i].empty())
      kept.push_back(trace.find(outputs[i].data));
  }
  LOOM_TRY(trace.named());
  first_slot.push_back(static_cast<int>(trace.tensors()));
  const auto end = static_cast<int64_t>(trace.commands().size());
  const std::vector<Lifetime> lives = trace.lifetimes();
  // A device fuses some commands if their tensors do not overlap. That must not depend on the
  // number of rows in a pass, so tensors of such commands never share memory.
  const bool apart = options.ragged && recorder->ops().device != nullptr;
  for (size_t i = 0; i < lives.size(); ++i) {
    const Tensor& t = trace.tensor(static_cast<int64_t>(i));
    const int slot = plan.add(i <= traced.size() ? 0 : plain_bytes(t.dtype, t.shape),
                              std::max<int64_t>(lives[i].first, 0));
    const bool stays = std::find(kept.begin(), kept.end(), static_cast<int64_t>(i)) != kept.end();
    const int64_t last = std::max<int64_t>(lives[i].last, 0);
    plan.use(slot, stays ? end : std::min(last + (apart ? kFusedCommands : 0), end));
  }
  results.clear();  // those of the trace; only their number matters
  plan.solve();
  LOOM_ASSIGN(arena, allocate_for(recorder->ops(), plan.total()));
  LOOM_TRY(keep_passes(end * 2));
  return reserve_for(trace, capacity, *recorder);
}

KvCache Session::Impl::cache_of(const StateSpec& s) const {
  KvCache cache{nullptr, nullptr, s.kv_heads, s.head_dim, capacity};
  cache.sequences = options.sequences;
  cache.dtype = options.cache;
  if (options.pages > 0) {  // one memory, divided into pages for sequences
    cache.capacity = options.pages * 16;
    cache.sequences = 1;
  }
  return cache;
}

Status Session::Impl::check_cache() const {
  const DTypeInfo& info = dtype_info(options.cache);
  if (!KvCache::can_hold(options.cache)) {
    return unsupported(cat("keys and values cannot be kept in ", info.name,
                           "; choose float32, float16, bfloat16, q8_0 or q4_0"));
  }
  if (options.cache == DType::f32) return {};
  const bool device = recorder->ops().device != nullptr;
  if (device && info.block > 0 && info.bits != 8) {
    return unsupported(
        cat("on a GPU keys and values are kept in float32, float16, bfloat16 or q8_0; ", info.name,
            " is for the CPU"));
  }
  for (const StateSpec& s : network->states()) {
    if (device && info.block == 0 && s.head_dim % 2 != 0) {
      return unsupported(cat("keys and values of ", s.head_dim,
                             " numbers per head cannot be kept in ", info.name,
                             " on a GPU; choose float32"));
    }
    if (info.block == 0 || s.head_dim % info.block == 0) continue;
    return unsupported(cat("keys and values of ", s.head_dim,
                           " numbers per head cannot be kept in ", info.name,
                           ", which has blocks of ", info.block, "; choose float16 or bfloat16"));
  }
  return {};
}

Status Session::Impl::make_state() {
  const DType compute = recorder->ops().compute;
  const int64_t element = dtype_info(compute).bits / 8;
  const int64_t rows = options.sequences * (options.ragged ? 2 : 1);
  int64_t bytes = 0;
  for (const StateSpec& s : network->states()) {
    bytes += 2 * cache_of(s).bytes();
    bytes += round_up(s.width * rows * element, 64);
  }
  LOOM_ASSIGN(state_memory, allocate_for(recorder->ops(), bytes));
  std::byte* at = state_memory.data();
  for (const StateSpec& s : network->states()) {
    KvCache cache = cache_of(s);
    cache.keys = at;
    cache.values = at + cache.bytes();
    at += 2 * cache.bytes();
    caches.push_back(cache);
    states.push_back(zeroed(at, compute, Shape{rows, s.width}));
    at += round_up(s.width * rows * element, 64);
  }
  const std::vector<bool> read = network->fed_back();
  if (std::find(read.begin(), read.end(), true) != read.end()) {
    std::vector<Shape> outputs;
    LOOM_ASSIGN(const std::vector<CellShapes> shapes, network->shapes(max_input));
    for (const CellShapes& s : shapes) outputs.push_back(s.out);
    LOOM_ASSIGN(feedback, FeedbackMemory::create(*network, outputs, recorder->ops()));
    LOOM_ASSIGN(next_feedback, FeedbackMemory::create(*network, outputs, recorder->ops()));
  }
  for (const RopeSpec& spec : network->ropes()) {
    LOOM_ASSIGN(RopeTable table, RopeTable::make(spec, capacity, options.max_positions));
    ropes.push_back(std::move(table));
    if (spec.numbers > 0) last_position = std::min(last_position, spec.numbers);
  }
  return {};
}

// Attaches everything that a pass names. Weights of a file are checked before upload.
Status Session::Impl::attach() {
  Device* device = recorder->ops().device;
  if (device == nullptr) return {};
  LOOM_TRY(check_params(0, network->cells().size()));
  LOOM_ASSIGN(input, Buffer::allocate(plain_bytes(DType::f32, max_input)));
  std::vector<MemoryRange> constants;
  for (const Param& p : network->params()) constants.push_back({p.tensor.data, p.bytes()});
  for (const RopeTable& table : ropes) constants.push_back(range_of(table.memory()));
  LOOM_ASSIGN(weights, Attached::attach(device, constants, MemoryUse::weights, true));
  LOOM_TRY(attach_state(device));
  std::vector<MemoryRange> own = {range_of(arena), range_of(input)};
  for (const Buffer& copy : copies) own.push_back(range_of(copy));
  if (masked) own.insert(own.end(), {range_of(masked->mask_memory), range_of(masked->ends_memory)});
  LOOM_ASSIGN(memory, Attached::attach(device, own, MemoryUse::scratch, false));
  return {};
}

// Attaches one layer at a time, because the state of several sequences may exceed one buffer.
// Positions have a buffer of their own, which kernels only read.
Status Session::Impl::attach_state(Device* device) {
  std::vector<MemoryRange> state;
  const std::byte* at = state_memory.data();
  for (size_t i = 0; i < caches.size(); ++i) {
    const std::byte* end =
        i + 1 < caches.size() ? caches[i + 1].keys : state_memory.data() + state_memory.size();
    state.push_back({at, end - at});
    at = end;
  }
  if (!feedback.empty()) {
    state.push_back(range_of(feedback.memory()));
    state.push_back(range_of(next_feedback.memory()));
  }
  LOOM_ASSIGN(state_attached, Attached::attach(device, state, MemoryUse::state, false));
  std::vector<MemoryRange> own;
  if (ragged) own = {range_of(ragged->place_memory), range_of(ragged->order_memory)};
  std::erase_if(own, [](const MemoryRange& range) { return range.bytes == 0; });
  LOOM_ASSIGN(places_attached, Attached::attach(device, own, MemoryUse::scratch, false));
  return {};
}

// An input of the caller in memory that commands can read. Values of the session's own arena are
// already there.
Result<Tensor> Session::Impl::received(const Tensor& x, Buffer& copy) {
  const Ops& ops = recorder->ops();
  if (ops.device == nullptr || ops.device->holds(range_of(x))) return x;
  Tensor mine = x;
  mine.data = copy.data();
  mine.row_stride = x.cols();
  const int64_t row = plain_bytes(x.dtype, Shape{x.cols()});
  if (row * x.rows() > copy.size()) {
    return invalid(cat("an input ", x.shape.str(), " does not fit the session, which was made for ",
                       max_input.str()));
  }
  for (int64_t r = 0; r < x.rows(); ++r) {
    std::memcpy(mine.data + r * row, x.data + r * plain_bytes(x.dtype, Shape{x.row_stride}),
                static_cast<size_t>(row));
  }
  LOOM_TRY(to_device(ops, mine));
  return mine;
}

Status Session::Impl::make_inputs() {
  for (const InputSpec& spec : network->extra_inputs()) {
    const Shape shape = spec.batch(max_input[0]);
    const DType dtype = spec.dtype(recorder->ops().compute);
    LOOM_ASSIGN(Buffer copy, Buffer::allocate(plain_bytes(dtype, shape)));
    std::memset(copy.data(), 0, static_cast<size_t>(copy.size()));
    copies.push_back(std::move(copy));
    given.push_back(zeroed(copies.back().data(), dtype, shape));
  }
  return {};
}

// For an unset input, `given` is the session's own copy, which is zeros.
Status Session::Impl::receive_inputs(int64_t samples) {
  received_inputs.clear();
  for (size_t i = 0; i < given.size(); ++i) {
    const InputSpec& spec = network->extra_inputs()[i];
    Tensor x = given[i];
    if (x.data == copies[i].data()) {
      x.shape = spec.batch(samples);
      x.row_stride = x.shape.last();
    } else if (!(x.shape == spec.batch(samples))) {
      return invalid(cat("the input '", printable(spec.name), "' is ", x.shape.str(), ", must be ",
                         spec.batch(samples).str()));
    }
    LOOM_ASSIGN(x, received(x, copies[i]));
    received_inputs.push_back(x);
  }
  return {};
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Network& network, const Ops& ops, ThreadPool& pool,
                                const Shape& max_input, const SessionOptions& options) {
  LOOM_TRY(network.check_loaded());
  if (options.pages < 0 || (options.pages > 0 && !options.ragged))
    return invalid(
        cat("a session cannot have ", options.pages, " pages; those are of ragged ones"));
  if (max_input.count() <= 0 || options.sequences < 1 ||
      (!options.ragged && max_input.rows() % options.sequences != 0)) {
    return invalid(cat("a session needs an input that splits into its sequences; got ",
                       max_input.str(), " and ", options.sequences, " sequences"));
  }
  auto impl = std::make_unique<Impl>();
  impl->network = &network;
  impl->options = options;
  impl->max_input = max_input;
  impl->checked.resize(network.cells().size());
  const int64_t longest = max_input.rank() == 1 ? max_input[0] : max_input[1];
  impl->capacity = round_up(options.max_positions > 0 ? options.max_positions : longest, 16);
  impl->last_position = impl->capacity;
  impl->recorder = std::make_unique<Recorder>(ops, pool, options.activations);
  LOOM_TRY(impl->check_cache());
  LOOM_TRY(impl->make_row_positions());
  LOOM_TRY(impl->make_state());
  LOOM_TRY(impl->make_inputs());
  LOOM_TRY(impl->make_mask());
  LOOM_TRY(impl->plan_memory());
  LOOM_TRY(impl->attach());
  return Session(std::move(impl));
}

// A pass begins at its first cell: the values that feedback links read must have the shapes of this
// input.
Status Session::Impl::begin_feedback(const Shape& shape) {
  if (feedback.empty() || (!forget_feedback && shape == feedback_input)) return {};
  if (!forget_feedback) {
    return invalid(cat("an input ", shape.str(), " after one of ", feedback_input.str(),
                       ": feedback links carry what the pass before gave, so inputs keep their "
                       "shape; reset the session before another one"));
  }
  LOOM_ASSIGN(const std::vector<CellShapes> cells, network->shapes(shape));
  for (size_t i = 0; i < cells.size(); ++i) {
    if (feedback.tensors()[i].empty()) continue;
    for (FeedbackMemory* side : {&feedback, &next_feedback}) {
      LOOM_TRY(side->reshape(i, cells[i].out));
      LOOM_TRY(recorder->fill({side->tensors()[i], 0.0f}));
    }
  }
  feedback_input = shape;
  return {};
}

// Writes the other buffer: cells of this pass that run in a later call still read the old values.
Status Session::Impl::keep_feedback(const std::vector<Tensor>& outputs, size_t first) {
  for (size_t i = 0; i < outputs.size() && !next_feedback.empty(); ++i) {
    const Tensor& kept = next_feedback.tensors()[first + i];
    if (!kept.empty()) LOOM_TRY(recorder->unary({outputs[i], kept}));
  }
  return {};
}

Status Session::Impl::run(const Tensor& x, size_t first, size_t last, Tensor& y) {
  LOOM_TRY(check_params(first, last));
  if (position == 0 && first == 0 && !has_initial_states && !options.ragged) {
    for (const Tensor& t : states) {
      if (t.shape.count() > 0) LOOM_TRY(recorder->fill({t, 0.0f}));
    }
  }
  if (first == 0) LOOM_TRY(begin_feedback(x.shape));
  LOOM_ASSIGN(const Tensor first_input, received(x, input));
  if (first == 0) LOOM_TRY(receive_inputs(x.shape[0]));
  if (first == 0) LOOM_TRY(receive_lengths(x.shape));
  misplaced = false;
  Pass walk = pass();
  std::vector<Tensor> outputs;
  walk.outputs = network->has_links() ? &outputs : nullptr;
  walk.results = &results;
  LOOM_ASSIGN(y, walk.run(first, last, first_input));
  if (misplaced) return broken_plan();
  return keep_feedback(outputs, first);
}

Result<Tensor> Session::forward(const Tensor& x, size_t first, size_t last, bool fetch) {
  Impl& s = *impl_;
  Tensor value;
  const Status recorded = s.run(x, first, last, value);
  if (!recorded.ok()) {
    s.recorder->discard();  // commands of a pass that will not run refer to the caller's memory
    return recorded.error();
  }
  LOOM_TRY(s.recorder->flush());
  const bool whole = last == s.network->cells().size();
  if (whole) {
    std::swap(s.feedback, s.next_feedback);
    s.forget_feedback = false;
  }
  if (fetch && whole) LOOM_TRY(to_host(s.recorder->ops(), s.results));
  return value;
}

void Session::reset() {
  impl_->position = 0;
  impl_->has_initial_states = false;
  impl_->forget_feedback = true;
}

Status Session::give(const std::vector<Tensor>& inputs) {
  Impl& s = *impl_;
  const std::vector<InputSpec>& specs = s.network->extra_inputs();
  if (inputs.size() != specs.size())
    return invalid(cat(inputs.size(), " further inputs are given, the network has ", specs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype == specs[i].dtype(s.recorder->ops().compute)) continue;
    return invalid(cat("the input '", printable(specs[i].name), "' is given as ",
                       dtype_name(inputs[i].dtype)));
  }
  s.given = inputs;
  return {};
}

std::vector<Tensor> Session::Impl::with_width() const {
  std::vector<Tensor> out;
  for (const Tensor& t : states) {
    if (t.shape.count() > 0) out.push_back(t);
  }
  return out;
}

Result<std::vector<Tensor>> Session::recurrent_states() {
  std::vector<Tensor> out = impl_->with_width();
  if (impl_->position == 0 && !impl_->has_initial_states) {
    for (const Tensor& t : out)
      std::memset(t.data, 0, static_cast<size_t>(plain_bytes(t.dtype, t.shape)));
    return out;
  }
  LOOM_TRY(to_host(impl_->recorder->ops(), out));
  return out;
}

Status Session::set_states(const std::vector<Tensor>& values) {
  const std::vector<Tensor> mine = impl_->with_width();
  if (values.size() != mine.size())
    return invalid(cat(values.size(), " states are given, the network has ", mine.size()));
  for (size_t i = 0; i < mine.size(); ++i) {
    const Tensor &from = values[i], &to = mine[i];
    if (!(from.shape == to.shape) || from.dtype != to.dtype || from.row_stride != to.row_stride)
      return invalid(cat("state ", i, " is ", dtype_name(from.dtype), " ", from.shape.str(),
                         ", must be ", dtype_name(to.dtype), " ", to.shape.str()));
  }
  for (size_t i = 0; i < mine.size(); ++i) {
    if (values[i].data != mine[i].data)
      std::memcpy(mine[i].data, values[i].data,
                  static_cast<size_t>(plain_bytes(mine[i].dtype, mine[i].shape)));
    LOOM_TRY(to_device(impl_->recorder->ops(), mine[i]));
  }
  impl_->has_initial_states = true;
  return {};
}

const std::vector<Tensor>& Session::results() const {
  return impl_->results;
}

int64_t Session::position() const {
  return impl_->position;
}
void Session::advance(int64_t positions) {
  impl_->position += positions;
}
void Session::rewind(int64_t position) {
  impl_->position = std::min(position, impl_->position);
}
int64_t Session::capacity() const {
  return impl_->capacity;
}
const std::vector<KvCache>& Session::caches() const {
  return impl_->caches;
}
int64_t Session::arena_bytes() const {
  int64_t commands = 0;
  if (impl_->ragged) {
    for (const CachedPlan& pass : impl_->ragged->cached_plans)
      commands += static_cast<int64_t>(pass.commands.capacity());
  }
  return impl_->arena.size() + impl_->recorder->workspace_bytes() +
         commands * static_cast<int64_t>(sizeof(Command));
}
int64_t Session::state_bytes() const {
  int64_t bytes = impl_->state_memory.size() + impl_->feedback.memory().size() +
                  impl_->next_feedback.memory().size();
  if (impl_->ragged)
    bytes += impl_->ragged->place_memory.size() + impl_->ragged->page_memory.size() +
             impl_->ragged->order_memory.size();
  for (const RopeTable& table : impl_->ropes) bytes += table.bytes();
  return bytes;
}
Recorder& Session::recorder() {
  return *impl_->recorder;
}
const Recorder& Session::recorder() const {
  return *impl_->recorder;
}

}  // namespace loom::core
