// The forward driver: plans every node's memory once, then walks the tree and lets each layer
// record its ops.
#include "grid/session.hpp"

#include <algorithm>

#include "base/arena.hpp"
#include "base/text.hpp"

namespace loom {
namespace {

// Where a node's memory lies: arena slots.
struct NodePlan {
  int output = -1;
  std::vector<int> temps;
  std::vector<NodePlan> children;
};

int64_t f32_bytes(const Shape& shape) {
  return shape.count() * 4;
}

// Walks one node while planning. Time advances by one per leaf, so lifetimes are ranges of leaves.
class Planner : public PlanCall {
 public:
  Planner(ArenaPlan& arena, int64_t& clock, const Node& node, NodePlan& plan, const Shape& in,
          int in_slot)
      : arena_(arena),
        clock_(clock),
        node_(node),
        plan_(plan),
        in_(in),
        in_slot_(in_slot),
        shape_(in),
        slot_(in_slot) {}

  const LayerConfig& config() const override { return node_.config; }
  const Shape& input() const override { return in_; }
  void temp(const Shape& shape) override {
    plan_.temps.push_back(arena_.add(f32_bytes(shape), clock_));
  }
  void output(const Shape& shape) override {
    plan_.output = arena_.add(f32_bytes(shape), clock_);
    shape_ = shape;
    slot_ = plan_.output;
    keep_input();
    ++clock_;
  }
  Status child(size_t i) override {
    plan_.children.resize(node_.children.size());
    const Node& below = node_.children[i];
    if (below.disabled()) return {};
    Planner walk(arena_, clock_, below, plan_.children[i], shape_, slot_);
    LOOM_TRY(walk.run());
    shape_ = walk.shape_;
    slot_ = walk.slot_;
    return {};
  }
  void keep_input() override {
    if (in_slot_ >= 0) arena_.use(in_slot_, clock_);
    if (slot_ >= 0) arena_.use(slot_, clock_);
  }
  Status run() {
    const LayerDef& def = *node_.config.def;
    LOOM_ASSIGN(const Shape out, def.infer(node_.config, in_));
    if (def.plan != nullptr) return def.plan(*this);
    output(out);
    return {};
  }
  const Shape& shape() const { return shape_; }
  int slot() const { return slot_; }

 private:
  ArenaPlan& arena_;
  int64_t& clock_;
  const Node& node_;
  NodePlan& plan_;
  Shape in_;
  int in_slot_;
  Shape shape_;  // of the current value
  int slot_;
};

}  // namespace

struct Session::Impl {
  const Network* network = nullptr;
  SessionOptions options;
  Shape max_input;
  int64_t capacity = 0;
  int64_t position = 0;
  ArenaPlan plan;
  std::vector<NodePlan> nodes;  // per cell
  Buffer arena;
  Buffer state_memory;
  std::vector<KvCache> caches;  // [state][sequence]
  std::vector<RopeTable> ropes;
  std::unique_ptr<Recorder> recorder;

  Status plan_memory();
  Status make_state();
  Result<Tensor> slot_tensor(int slot, const Shape& shape) const;
};

namespace {

class Walker : public ForwardCall {
 public:
  Walker(Session::Impl& session, const Node& node, const NodePlan& plan, const Tensor& x)
      : s_(session), node_(node), plan_(plan), x_(x) {}

  Recorder& ops() override { return *s_.recorder; }
  const LayerConfig& config() const override { return node_.config; }
  const Tensor& x() const override { return x_; }
  Result<Tensor> temp(size_t i, const Shape& shape) override {
    return s_.slot_tensor(plan_.temps[i], shape);
  }
  Result<Tensor> output(const Shape& shape) override { return s_.slot_tensor(plan_.output, shape); }
  const Tensor& param(size_t i) const override {
    return s_.network->params()[static_cast<size_t>(node_.params[i])].tensor;
  }
  int64_t sequences() const override { return s_.options.sequences; }
  int64_t first() const override { return s_.position; }
  KvCache cache(int64_t sequence) override {
    return s_.caches[static_cast<size_t>(node_.state * s_.options.sequences + sequence)];
  }
  const Tensor& rope_cos() const override {
    return s_.ropes[static_cast<size_t>(node_.rope)].cos();
  }
  const Tensor& rope_sin() const override {
    return s_.ropes[static_cast<size_t>(node_.rope)].sin();
  }
  Result<Tensor> child(size_t i, const Tensor& input) override {
    const Node& below = node_.children[i];
    if (below.disabled()) return input;
    Walker walk(s_, below, plan_.children[i], input);
    return below.config.def->forward(walk);
  }

 private:
  Session::Impl& s_;
  const Node& node_;
  const NodePlan& plan_;
  Tensor x_;
};

int64_t widest(const Node& node, const Network& network) {
  int64_t width = 0;
  for (int index : node.params) {
    const Shape& shape = network.params()[static_cast<size_t>(index)].spec.shape;
    if (shape.rank() == 2) width = std::max(width, shape[1]);
  }
  for (const Node& child : node.children) width = std::max(width, widest(child, network));
  return width;
}

int64_t count_nodes(const Node& node) {
  int64_t count = 1;
  for (const Node& child : node.children) count += count_nodes(child);
  return count;
}

}  // namespace

Result<Tensor> Session::Impl::slot_tensor(int slot, const Shape& shape) const {
  if (shape.count() * 4 > plan.bytes(slot)) {
    return invalid(cat("a tensor ", shape.str(),
                       " does not fit the session, which was made for inputs up to ",
                       max_input.str()));
  }
  Tensor t;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = arena.data() + plan.offset(slot);
  return t;
}

Status Session::Impl::plan_memory() {
  int64_t clock = 0, width = 1, nodes_total = 0;
  Shape shape = max_input;
  int slot = -1, kept = -1;
  nodes.resize(network->cells().size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (options.narrow_cell > 0 && i == options.narrow_cell) {
      shape = Shape{std::min(options.narrow_rows, shape.rows()), shape.last()};
      kept = slot;
    }
    const Node& node = network->cells()[i].node;
    Planner walk(plan, clock, node, nodes[i], shape, slot);
    LOOM_TRY(walk.run());
    shape = walk.shape();
    slot = walk.slot();
    width = std::max(width, widest(node, *network));
    nodes_total += count_nodes(node);
  }
  if (slot >= 0) plan.use(slot, clock);
  if (kept >= 0) plan.use(kept, clock);
  plan.solve();
  LOOM_ASSIGN(arena, Buffer::allocate(plan.total()));
  return recorder->reserve(nodes_total * (14 + 4 * options.sequences), max_input.count(), width,
                           capacity);
}

Status Session::Impl::make_state() {
  int64_t floats = 0;
  for (const StateSpec& s : network->states())
    floats += 2 * s.kv_heads * s.head_dim * capacity * options.sequences;
  LOOM_ASSIGN(state_memory, Buffer::allocate(floats * 4));
  auto* at = reinterpret_cast<float*>(state_memory.data());
  for (const StateSpec& s : network->states()) {
    for (int64_t i = 0; i < options.sequences; ++i) {
      KvCache cache{at, at, s.kv_heads, s.head_dim, capacity};
      cache.values = cache.keys + cache.key_floats();
      at = cache.values + cache.key_floats();
      caches.push_back(cache);
    }
  }
  for (const RopeSpec& spec : network->ropes()) {
    LOOM_ASSIGN(RopeTable table, RopeTable::make(spec, capacity));
    ropes.push_back(std::move(table));
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
      max_input.rows() % options.sequences != 0) {
    return invalid(cat("a session needs an input that splits into its sequences; got ",
                       max_input.str(), " and ", options.sequences, " sequences"));
  }
  auto impl = std::make_unique<Impl>();
  impl->network = &network;
  impl->options = options;
  impl->max_input = max_input;
  const int64_t longest = max_input.rank() == 1 ? max_input[0] : max_input[1];
  impl->capacity = round_up(options.max_positions > 0 ? options.max_positions : longest, 16);
  impl->recorder = std::make_unique<Recorder>(ops, pool, options.activations);
  LOOM_TRY(impl->plan_memory());
  LOOM_TRY(impl->make_state());
  return Session(std::move(impl));
}

Result<Tensor> Session::forward(const Tensor& x, size_t first, size_t last) {
  Tensor value = x;
  for (size_t i = first; i < last; ++i) {
    const Node& node = impl_->network->cells()[i].node;
    Walker walk(*impl_, node, impl_->nodes[i], value);
    LOOM_ASSIGN(value, node.config.def->forward(walk));
  }
  LOOM_TRY(impl_->recorder->flush());
  return value;
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
int64_t Session::arena_bytes() const {
  return impl_->arena.size() + impl_->recorder->workspace_bytes();
}
int64_t Session::state_bytes() const {
  int64_t bytes = impl_->state_memory.size();
  for (const RopeTable& table : impl_->ropes) bytes += table.bytes();
  return bytes;
}
Recorder& Session::recorder() {
  return *impl_->recorder;
}

}  // namespace loom
