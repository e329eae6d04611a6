// The forward driver. Memory is planned once, from a trace of the largest input; a pass then asks
// for its tensors in the same order and gets the places the plan found for them.
#include "grid/session.hpp"

#include <algorithm>
#include <cstring>

#include "base/arena.hpp"
#include "base/text.hpp"
#include "grid/feedback.hpp"
#include "grid/pass.hpp"
#include "ops/trace.hpp"

namespace loom::core {

struct Session::Impl {
  const Network* network = nullptr;
  SessionOptions options;
  Shape max_input;
  int64_t capacity = 0;
  int64_t position = 0;
  ArenaPlan plan;
  std::vector<int> first_slot;  // of each cell, and behind the last
  int next_slot = 0, end_slot = 0;
  bool misplaced = false;  // a layer asked for other tensors than those that were planned
  Buffer arena;
  Buffer state_memory;
  std::vector<KvCache> caches;  // [state]
  Buffer place_memory;          // of a ragged session: RowPlace of every row
  Tensor places;
  // The ragged pass whose commands the recorder still holds: its input, how many rows of it went on
  // to the last cells, and their output.
  Tensor kept_input, kept_output;
  int64_t kept_wanted = -1;
  std::vector<Tensor> states;  // [state]: [sequences, width]
  // What feedback links read in this pass, and what they will read in the next.
  FeedbackMemory feedback, next_feedback;
  Shape feedback_input;  // the input that `feedback` has the shapes for
  std::vector<RopeTable> ropes;
  std::unique_ptr<Recorder> recorder;
  std::vector<bool> checked;  // cells whose parameters were checked (Network::check_node)
  bool forget_feedback = true;
  // On a device: what it holds for this session, and where inputs of the caller go first.
  Attached weights, state_attached, memory;
  Buffer input;
  // Inputs besides the first as the caller gave them, as commands read them, and zeros or copies
  // that they may be.
  std::vector<Tensor> given, received_inputs;
  std::vector<Buffer> copies;
  std::vector<Tensor> results;

  Status attach();
  Result<Tensor> received(const Tensor& x, Buffer& copy);
  Status make_inputs();
  Status receive_inputs(int64_t samples);
  Status check_params(size_t first, size_t last);
  Status plan_memory();
  KvCache cache_of(const StateSpec& s) const;  // without memory yet
  Status check_cache() const;
  Status make_state();
  Status make_places();
  // Rows that layers see: of an Embedding's input one for each id.
  int64_t rows_of(const Shape& shape) const {
    return takes_ids(network->cells()[0].node.config) ? shape.count() : shape.rows();
  }
  Status begin_feedback(const Shape& shape);
  Status keep_feedback(const std::vector<Tensor>& outputs, size_t first);
  Status run(const Tensor& x, size_t first, size_t last, Tensor& y);
  Status record_ragged(const Tensor& x, int64_t wanted);
  Pass pass();
  Result<Tensor> next_tensor(const Shape& shape);
};

namespace {

int64_t widest(const Node& node, const Network& network) {
  int64_t width = 0;
  for (int index : node.params) {
    const Shape& shape = network.params()[static_cast<size_t>(index)].spec.shape;
    if (shape.rank() == 2) width = std::max(width, shape[1]);
  }
  for (const Node& child : node.children) width = std::max(width, widest(child, network));
  return width;
}

// Places are handed out in the order of the plan, so a layer that asks for more or fewer tensors
// for a shorter input would be given those of another use (layers/layer.hpp).
Error broken_plan() {
  return make_error(Code::internal,
                    "the memory planned for this network does not fit an input of this length; "
                    "please report the network");
}

Tensor zeroed(std::byte* memory, DType dtype, const Shape& shape) {
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = memory;
  return t;
}

}  // namespace

Pass Session::Impl::pass() {
  Pass p;
  p.network = network;
  p.recorder = recorder.get();
  p.tensor = [this](const Shape& shape) { return next_tensor(shape); };
  p.ropes = &ropes;
  p.sequences = options.ragged ? 1 : options.sequences;
  p.first = position;
  p.places = places;
  p.stateful = true;
  p.caches = &caches;
  p.states = &states;
  p.feedback = &feedback.tensors();
  p.given = &received_inputs;
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
  p.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  p.on_cell = [&](size_t) { first_slot.push_back(static_cast<int>(trace.tensors())); };
  p.on_output = {};
  // The first tensors are inputs, which the caller owns: their places have no bytes.
  const bool ids = takes_ids(network->cells()[0].node.config);
  Tensor value = trace.fresh(max_input, ids ? DType::i32 : trace.compute());
  std::vector<Tensor> traced;
  for (const InputSpec& spec : network->more_inputs())
    traced.push_back(trace.fresh(spec.batch(max_input[0]), spec.dtype(trace.compute())));
  p.given = &traced;
  std::vector<Tensor> outputs;
  p.results = &results;
  p.outputs = network->has_links() ? &outputs : nullptr;
  const size_t cells = network->cells().size();
  const size_t narrow = options.narrow_cell > 0 ? options.narrow_cell : cells;
  LOOM_ASSIGN(value, p.run(0, narrow, value));
  // What somebody reads after the pass.
  std::vector<int64_t> kept = {trace.find(value.data)};
  if (narrow < cells) {
    const int64_t rows = std::min(options.narrow_rows, value.rows());
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
  for (size_t i = 0; i < lives.size(); ++i) {
    const Tensor& t = trace.tensor(static_cast<int64_t>(i));
    const int slot = plan.add(i <= traced.size() ? 0 : plain_bytes(t.dtype, t.shape),
                              std::max<int64_t>(lives[i].first, 0));
    const bool stays = std::find(kept.begin(), kept.end(), static_cast<int64_t>(i)) != kept.end();
    plan.use(slot, stays ? end : std::max<int64_t>(lives[i].last, 0));
  }
  results.clear();  // those of the trace; their number is known
  plan.solve();
  LOOM_ASSIGN(arena, allocate_for(recorder->ops(), plan.total()));
  int64_t width = 1;
  for (const GridNode& cell : network->cells())
    width = std::max(width, widest(cell.node, *network));
  return recorder->reserve(end * 2, max_input.count(), width, capacity);
}

KvCache Session::Impl::cache_of(const StateSpec& s) const {
  KvCache cache{nullptr, nullptr, s.kv_heads, s.head_dim, capacity};
  cache.sequences = options.sequences;
  cache.dtype = options.cache;
  return cache;
}

Status Session::Impl::check_cache() const {
  const DTypeInfo& info = dtype_info(options.cache);
  if (!KvCache::can_hold(options.cache)) {
    return unsupported(cat("keys and values cannot be kept in ", info.name,
                           "; choose float32, float16, bfloat16 or q8_0"));
  }
  if (options.cache == DType::f32) return {};
  if (recorder->ops().device != nullptr) {
    return unsupported(
        cat("on a GPU keys and values are kept in float32; ", info.name, " is for the CPU"));
  }
  for (const StateSpec& s : network->states()) {
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
  int64_t bytes = 0;
  for (const StateSpec& s : network->states()) {
    bytes += 2 * cache_of(s).bytes();
    bytes += round_up(s.width * options.sequences * element, 64);
  }
  LOOM_ASSIGN(state_memory, allocate_for(recorder->ops(), bytes));
  std::byte* at = state_memory.data();
  for (const StateSpec& s : network->states()) {
    KvCache cache = cache_of(s);
    cache.keys = at;
    cache.values = at + cache.bytes();
    at += 2 * cache.bytes();
    caches.push_back(cache);
    states.push_back(zeroed(at, compute, Shape{options.sequences, s.width}));
    at += round_up(s.width * options.sequences * element, 64);
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
    LOOM_ASSIGN(RopeTable table, RopeTable::make(spec, capacity));
    ropes.push_back(std::move(table));
  }
  return {};
}

namespace {

// The first layer, in the order of the tree, that cannot run rows of several sequences.
const Node* not_ragged(const Node& node) {
  if (node.disabled()) return nullptr;
  if (!node.config.def->ragged) return &node;
  for (const Node& child : node.children) {
    if (const Node* found = not_ragged(child)) return found;
  }
  return nullptr;
}

}  // namespace

Status Session::Impl::make_places() {
  if (!options.ragged) return {};
  if (recorder->ops().device != nullptr)
    return unsupported(
        "passes of several sequences, each at a position of its own, run on the CPU");
  if (network->has_links() || !network->more_inputs().empty())
    return unsupported("a network with links or further inputs cannot run sequences together");
  for (const GridNode& cell : network->cells()) {
    const Node* bad = not_ragged(cell.node);
    if (bad == nullptr) continue;
    return unsupported(
        cat(bad->config.def->name, " at ", cell.at.str(),
            " looks at several rows of its input, so sequences cannot share a pass"));
  }
  const int64_t rows = rows_of(max_input);
  LOOM_ASSIGN(place_memory, Buffer::allocate(rows * int64_t{sizeof(RowPlace)}));
  places = zeroed(place_memory.data(), DType::i32, Shape{rows, 2});
  return {};
}

// Everything a pass names. Weights of a file are checked before they leave it.
Status Session::Impl::attach() {
  Device* device = recorder->ops().device;
  if (device == nullptr) return {};
  LOOM_TRY(check_params(0, network->cells().size()));
  LOOM_ASSIGN(input, Buffer::allocate(plain_bytes(DType::f32, max_input)));
  std::vector<MemoryRange> constants;
  for (const Param& p : network->params()) constants.push_back({p.tensor.data, p.bytes()});
  for (const RopeTable& table : ropes) {
    constants.push_back(range_of(table.cos()));
    constants.push_back(range_of(table.sin()));
  }
  LOOM_ASSIGN(weights, Attached::attach(device, constants, MemoryUse::weights, true));
  const MemoryRange state[] = {range_of(state_memory), range_of(feedback.memory()),
                               range_of(next_feedback.memory())};
  LOOM_ASSIGN(state_attached, Attached::attach(device, {state, feedback.empty() ? 1u : 3u},
                                               MemoryUse::state, false));
  std::vector<MemoryRange> own = {range_of(arena), range_of(input)};
  for (const Buffer& copy : copies) own.push_back(range_of(copy));
  LOOM_ASSIGN(memory, Attached::attach(device, own, MemoryUse::scratch, false));
  return {};
}

// An input of the caller where commands can read it; values of the session's own arena are there.
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
  for (const InputSpec& spec : network->more_inputs()) {
    const Shape shape = spec.batch(max_input[0]);
    const DType dtype = spec.dtype(recorder->ops().compute);
    LOOM_ASSIGN(Buffer copy, Buffer::allocate(plain_bytes(dtype, shape)));
    std::memset(copy.data(), 0, static_cast<size_t>(copy.size()));
    copies.push_back(std::move(copy));
    given.push_back(zeroed(copies.back().data(), dtype, shape));
  }
  return {};
}

// Where nobody gave one, `given` is the session's own copy, which is zeros.
Status Session::Impl::receive_inputs(int64_t samples) {
  received_inputs.clear();
  for (size_t i = 0; i < given.size(); ++i) {
    const InputSpec& spec = network->more_inputs()[i];
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
  impl->recorder = std::make_unique<Recorder>(ops, pool, options.activations);
  LOOM_TRY(impl->check_cache());
  LOOM_TRY(impl->make_places());
  LOOM_TRY(impl->make_state());
  LOOM_TRY(impl->make_inputs());
  LOOM_TRY(impl->plan_memory());
  LOOM_TRY(impl->attach());
  return Session(std::move(impl));
}

// A pass begins at its first cell: what feedback links read must have the shapes of this input.
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

// Into the other side: cells of this pass that run in a later call still read what was before.
Status Session::Impl::keep_feedback(const std::vector<Tensor>& outputs, size_t first) {
  for (size_t i = 0; i < outputs.size() && !next_feedback.empty(); ++i) {
    const Tensor& kept = next_feedback.tensors()[first + i];
    if (!kept.empty()) LOOM_TRY(recorder->unary({outputs[i], kept}));
  }
  return {};
}

Status Session::Impl::run(const Tensor& x, size_t first, size_t last, Tensor& y) {
  LOOM_TRY(check_params(first, last));
  if (position == 0 && first == 0) {
    for (const Tensor& t : states) {
      if (t.shape.count() > 0) LOOM_TRY(recorder->fill({t, 0.0f}));
    }
  }
  if (first == 0) LOOM_TRY(begin_feedback(x.shape));
  LOOM_ASSIGN(const Tensor first_input, received(x, input));
  if (first == 0) LOOM_TRY(receive_inputs(x.shape[0]));
  misplaced = false;
  Pass walk = pass();
  std::vector<Tensor> outputs;
  walk.outputs = network->has_links() ? &outputs : nullptr;
  walk.results = &results;
  LOOM_ASSIGN(y, walk.run(first, last, first_input));
  if (misplaced) return broken_plan();
  return keep_feedback(outputs, first);
}

Status Session::Impl::record_ragged(const Tensor& x, int64_t wanted) {
  Tensor hidden, y;
  const Status recorded = [&]() -> Status {
    LOOM_TRY(run(x, 0, options.narrow_cell, hidden));
    if (hidden.rows() != rows_of(x.shape)) {
      return invalid(cat(rows_of(x.shape), " rows become ", hidden.shape.str(),
                         " before the last cells, so none of them can go on alone"));
    }
    if (wanted == 0) return {};
    return run(hidden.slice_rows(0, wanted), options.narrow_cell, network->cells().size(), y);
  }();
  if (!recorded.ok()) {
    recorder->discard();
    return recorded;
  }
  kept_input = x;
  kept_output = y;
  kept_wanted = wanted;
  return {};
}

Result<Tensor> Session::forward(const Tensor& x, size_t first, size_t last, bool fetch) {
  Impl& s = *impl_;
  s.kept_wanted = -1;
  Tensor value;
  const Status recorded = s.run(x, first, last, value);
  if (!recorded.ok()) {
    s.recorder->discard();  // commands of a pass that will not run name memory of the caller
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
  impl_->forget_feedback = true;
}

Status Session::give(const std::vector<Tensor>& inputs) {
  Impl& s = *impl_;
  const std::vector<InputSpec>& specs = s.network->more_inputs();
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

Result<Tensor> Session::forward_ragged(const Tensor& x, int64_t wanted) {
  Impl& s = *impl_;
  const bool kept = s.kept_wanted == wanted && s.kept_input.data == x.data &&
                    s.kept_input.shape == x.shape && s.places.rows() == s.rows_of(x.shape);
  if (!kept) {
    s.kept_wanted = -1;
    s.recorder->discard();
    LOOM_TRY(s.record_ragged(x, wanted));
  }
  LOOM_TRY(s.recorder->run());
  return s.kept_output;
}

Status Session::place(std::span<const RowPlace> rows) {
  Impl& s = *impl_;
  const auto count = static_cast<int64_t>(rows.size());
  if (!s.options.ragged || count > s.rows_of(s.max_input)) {
    return invalid(cat(count, " rows are placed; this session was made for ",
                       s.options.ragged ? s.rows_of(s.max_input) : 0));
  }
  for (const RowPlace& row : rows) {
    if (row.sequence >= 0 && row.sequence < s.options.sequences && row.position >= 0 &&
        row.position < s.capacity) {
      continue;
    }
    return make_error(Code::out_of_range,
                      cat("position ", row.position, " of sequence ", row.sequence,
                          " is not among ", s.capacity, " of ", s.options.sequences));
  }
  std::memcpy(s.place_memory.data(), rows.data(), rows.size_bytes());
  s.places = zeroed(s.place_memory.data(), DType::i32, Shape{count, 2});
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
  return impl_->arena.size() + impl_->recorder->workspace_bytes();
}
int64_t Session::state_bytes() const {
  int64_t bytes = impl_->state_memory.size() + impl_->feedback.memory().size() +
                  impl_->next_feedback.memory().size() + impl_->place_memory.size();
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
