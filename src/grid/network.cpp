#include "grid/network.hpp"

#include <algorithm>
#include <atomic>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

// f32 values unpacked at a time while loading: 1 MB.
constexpr int64_t kLoadValues = int64_t{1} << 18;

TensorRange join(const TensorRange& a, int64_t n, const TensorRange& b, int64_t m) {
  TensorRange r;
  r.min = std::min(a.min, b.min);
  r.max = std::max(a.max, b.max);
  const double total = static_cast<double>(n + m);
  r.mean_abs =
      total > 0
          ? (a.mean_abs * static_cast<double>(n) + b.mean_abs * static_cast<double>(m)) / total
          : 0;
  // Zeros are on every grid.
  if (a.mean_abs == 0) r.grid = b.grid;
  if (b.mean_abs == 0 || a.grid == b.grid) r.grid = a.grid;
  return r;
}

// Parameters of a layer and its descendants. `specs`: memory to reuse.
size_t count_params(const LayerConfig& layer, std::vector<ParamSpec>& specs) {
  specs.clear();
  if (layer.def->params != nullptr) layer.def->params(layer, specs);
  size_t count = specs.size();
  for (const LayerConfig& child : layer.children) count += count_params(child, specs);
  return count;
}

bool smaller(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return a.rank() < b.rank();
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a[axis] != b[axis]) return a[axis] < b[axis];
  }
  return false;
}

}  // namespace

bool Network::SpecOrder::operator()(const ParamSpec& a, const ParamSpec& b) const {
  if (a.name != b.name) return a.name < b.name;
  if (a.init != b.init) return a.init < b.init;
  if (a.trained != b.trained) return b.trained;
  if (a.product != b.product) return b.product;
  if (a.factor != b.factor) return a.factor < b.factor;
  if (!(a.shape == b.shape)) return smaller(a.shape, b.shape);
  return smaller(a.table, b.table);
}

// A layer that shares owns nothing: each of its parameters must exist at the owner.
Result<int> Network::param_for(const ParamSpec& spec, const std::string& path, const Owner* owner) {
  if (owner == nullptr) {
    const ParamSpec& kept = *specs_.insert(spec).first;
    params_.push_back({cat(path, "/", spec.name), kept, {}, {}, {}, {}});
    return static_cast<int>(params_.size()) - 1;
  }
  const std::vector<int> none;
  for (const int index : owner->node != nullptr ? owner->node->params : none) {
    const Param& shared = params_[static_cast<size_t>(index)];
    if (shared.spec.name != spec.name) continue;
    if (shared.spec.shape == spec.shape) return index;
    return invalid(cat("cannot share ", shared.path, " ", shared.spec.shape.str(), " as ", path,
                       "/", spec.name, " ", spec.shape.str(), ": the shapes differ"));
  }
  return invalid(cat(path, "/", spec.name, " has no counterpart in ", owner->who,
                     ", whose weights it shares; make the two layers alike, or share nothing"));
}

// Layers with one name use one input.
Result<int> Network::input_for(const InputSpec& spec, const std::string& path) {
  for (size_t i = 0; i < more_inputs_.size(); ++i) {
    if (more_inputs_[i].name != spec.name) continue;
    if (more_inputs_[i] == spec) return static_cast<int>(i);
    return invalid(cat(path, " is the input '", printable(spec.name),
                       "', which a layer before it has in another shape or type"));
  }
  more_inputs_.push_back(spec);
  return static_cast<int>(more_inputs_.size()) - 1;
}

// The owner of child number `i` of `parent`: derived from its parent's owner, or from the graph.
// Earlier children exist already.
std::optional<Network::Owner> Network::owner_of_child(const Node& parent, size_t i,
                                                      const std::string& path, const Owner* owner) {
  if (owner != nullptr) {
    const bool there = owner->node != nullptr && i < owner->node->children.size();
    return Owner{owner->who, there ? &owner->node->children[i] : nullptr};
  }
  const int64_t from =
      parent.config.def->wired ? graph_owner(parent.config, static_cast<int64_t>(i)) : -1;
  if (from < 0) return std::nullopt;
  const bool there = from < static_cast<int64_t>(i);
  return Owner{cat(path, "/", from), there ? &parent.children[static_cast<size_t>(from)] : nullptr};
}

Result<Node> Network::add_node(const LayerConfig& config, const std::string& path,
                               const Owner* owner) {
  Node node(config);
  node.id = nodes_++;
  const LayerDef& def = *config.def;
  if (def.params != nullptr) {
    std::vector<ParamSpec> specs;
    def.params(config, specs);
    node.params.reserve(specs.size());
    for (const ParamSpec& spec : specs) {
      LOOM_ASSIGN(const int index, param_for(spec, path, owner));
      node.params.push_back(index);
    }
  }
  if (def.rope != nullptr && !(def.rope(config) == RopeSpec{})) {
    const RopeSpec rope = def.rope(config);
    const auto at = std::find(ropes_.begin(), ropes_.end(), rope);
    node.rope = static_cast<int>(at - ropes_.begin());
    if (at == ropes_.end()) ropes_.push_back(rope);
  }
  if (def.state != nullptr) {
    node.state = static_cast<int>(states_.size());
    states_.push_back(def.state(config));
  }
  if (def.input != nullptr) {
    LOOM_ASSIGN(node.input, input_for(def.input(config), path));
  }
  node.children.reserve(config.children.size());
  for (size_t i = 0; i < config.children.size(); ++i) {
    const std::optional<Owner> below = owner_of_child(node, i, path, owner);
    const Owner* shared = below.has_value() ? &*below : nullptr;
    LOOM_ASSIGN(Node child, add_node(config.children[i], cat(path, "/", i), shared));
    node.children.push_back(std::move(child));
  }
  return node;
}

// Finds the cell that a link names and checks that the pass order allows it.
Result<Network::Incoming> Network::resolve_link(const GridSpec& spec, const Cell& cell,
                                                const Coord& at) {
  const Link& link = *cell.link;
  const Cell* target = spec.find(link.from);
  if (target == nullptr || target->layer.disabled) {
    return invalid(cat("cell ", at.str(), " is linked to ", link.from.str(),
                       ", where there is no enabled layer"));
  }
  LOOM_ASSIGN(const int64_t mine, spec.index(at));
  LOOM_ASSIGN(const int64_t theirs, spec.index(link.from));
  if (!link.feedback && theirs == mine) {
    return invalid(cat("cell ", at.str(),
                       " cannot be linked to itself; make the link a feedback link to take what "
                       "the previous pass gave"));
  }
  if (!link.feedback && theirs > mine) {
    return invalid(cat("cell ", at.str(), " is linked to ", link.from.str(),
                       ", which comes after it, so each would wait for the other; make the link a "
                       "feedback link to take what the previous pass gave"));
  }
  has_links_ = true;
  Incoming in{0, link.feedback, wants_skip(cell.layer)};
  for (int64_t i = 0; i < theirs; ++i) {
    const Cell* other = spec.cell(i);
    if (other != nullptr && !other->layer.disabled) ++in.link;  // enabled cells before the target
  }
  return in;
}

// Marks the parameters below `node`, from `first` on, as held by child number `child` of their
// cell.
void Network::mark_child(const Node& node, int child, size_t first) {
  for (const int index : node.params) {
    Param& p = params_[static_cast<size_t>(index)];
    // For shared parameters, the first child counts.
    if (static_cast<size_t>(index) >= first && p.child < 0) p.child = child;
  }
  for (const Node& below : node.children) mark_child(below, child, first);
}

// The cell whose parameters `cell` shares. The owner alone chooses the number type.
Result<Network::Owner> Network::owner_of(const GridSpec& spec, const Cell& cell,
                                         const Coord& at) const {
  const Coord& from = *cell.shared_with;
  Owner owner{cat("cell ", from.str()), nullptr};
  for (const GridNode& other : cells_) {
    if (other.at == from) owner.node = &other.node;
  }
  if (owner.node == nullptr) {
    return invalid(cat("cell ", at.str(), " shares weights with ", from.str(),
                       ", which is not a layer before it"));
  }
  if (cell.dtype.has_value() && cell.dtype != spec.find(from)->dtype) {
    return invalid(cat("cell ", at.str(), " shares weights with ", from.str(),
                       " and cannot hold them in another number type; give the type there"));
  }
  return owner;
}

Status Network::add_cell(const GridSpec& spec, int64_t index) {
  const Cell& cell = *spec.cell(index);
  const Coord at = spec.coord(index);
  Incoming in;
  if (cell.link.has_value()) {
    LOOM_ASSIGN(in, resolve_link(spec, cell, at));
  }
  std::optional<Owner> owner;
  if (cell.shared_with.has_value()) {
    LOOM_ASSIGN(owner, owner_of(spec, cell, at));
  }
  const size_t first_param = params_.size();
  const Owner* shared = owner.has_value() ? &*owner : nullptr;
  LOOM_ASSIGN(Node node, add_node(cell.layer, at.str(), shared));
  const size_t own = params_.size();
  LOOM_TRY(add_adapters(cell, at, node));
  for (size_t i = first_param; i < params_.size(); ++i) {
    params_[i].adapter = i >= own;
    params_[i].dtype = i < own ? cell.dtype : DType::f32;
    params_[i].cell = at;
  }
  for (size_t i = 0; i < node.children.size(); ++i)
    mark_child(node.children[i], static_cast<int>(i), first_param);
  LOOM_TRY(mark_frozen(cell, at, first_param));
  cells_.push_back(
      {at, spec.shared_cell(index), {}, {}, std::move(node), in.link, in.feedback, in.skip});
  return {};
}

// Parameters from number `first` on belong to the cell.
Status Network::mark_frozen(const Cell& cell, const Coord& at, size_t first) {
  const size_t prefix = at.str().size() + 1;
  for (const std::string& pattern : cell.frozen) {
    bool found = false;
    for (size_t i = first; i < params_.size(); ++i) {
      if (!matches_pattern(pattern, std::string_view(params_[i].path).substr(prefix))) continue;
      params_[i].frozen = found = true;
    }
    if (!found)
      return invalid(cat("cell ", at.str(), ": frozen: it has no parameter '", printable(pattern),
                         "' of its own"));
  }
  return {};
}

std::vector<bool> Network::fed_back() const {
  std::vector<bool> read(cells_.size());
  for (const GridNode& node : cells_) {
    if (node.feedback) read[static_cast<size_t>(node.link)] = true;
  }
  return read;
}

// Avoids moves and overallocation as large networks grow.
void Network::reserve(const GridSpec& spec) {
  size_t cells = 0, params = 0;
  std::vector<ParamSpec> specs;
  for (int64_t i = 0; i < spec.size(); ++i) {
    const Cell* cell = spec.cell(i);
    if (cell == nullptr || cell->layer.disabled) continue;
    ++cells;
    if (!cell->shared_with.has_value()) params += count_params(cell->layer, specs);
  }
  cells_.reserve(cells);
  params_.reserve(params);
}

Result<Network> Network::finalize(const GridSpec& spec, const Shape& input) {
  Network net;
  net.input_ = input;
  net.reserve(spec);
  for (int64_t i = 0; i < spec.size(); ++i) {
    const Cell* cell = spec.cell(i);
    if (cell == nullptr || cell->layer.disabled) continue;
    LOOM_TRY(net.add_cell(spec, i));
  }
  if (net.cells_.empty()) return invalid("the grid has no enabled layer; put at least one");
  LOOM_ASSIGN(const std::vector<CellShapes> shapes, net.shapes(input));
  for (size_t i = 0; i < shapes.size(); ++i) {
    net.cells_[i].in = shapes[i].in;
    net.cells_[i].out = shapes[i].out;
  }
  net.more_outputs_ = shapes.back().more;
  return net;
}

int Network::find_param(std::string_view path) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].path == path) return static_cast<int>(i);
  }
  return -1;
}

// Several tables may read the same ids; an id needs a row in each.
int64_t Network::vocab() const {
  const LayerConfig& first = cells_[0].node.config;
  return takes_ids(first) ? id_rows(first) : 0;
}

int64_t Network::param_count() const {
  int64_t count = 0;
  for (const Param& p : params_) count += p.spec.shape.count();
  return count;
}

ParamCounts Network::param_counts() const {
  ParamCounts counts;
  for (const Param& p : params_) {
    int64_t& kind = !p.spec.trained ? counts.constant : p.frozen ? counts.frozen : counts.trained;
    kind += p.spec.shape.count();
  }
  return counts;
}

int64_t Network::param_bytes() const {
  int64_t bytes = 0;
  for (const Param& p : params_) bytes += p.bytes();
  return bytes;
}

Status Network::allocate_param(int index, DType dtype, DType vectors) {
  Param& p = param(index);
  if (p.adapter && dtype != DType::f64) dtype = DType::f32;
  if (p.spec.matrix()) {
    const R16 geometry = r16_geometry(dtype, p.spec.shape[0], p.spec.shape[1]);
    LOOM_ASSIGN(p.memory, weights_.allocate(geometry.bytes()));
    p.tensor = r16_tensor(geometry, p.memory.data());
    return {};
  }
  LOOM_ASSIGN(p.memory, weights_.allocate(plain_bytes(vectors, p.spec.shape)));
  p.tensor = Tensor{};
  p.tensor.dtype = vectors;
  p.tensor.shape = p.spec.shape;
  p.tensor.row_stride = p.spec.shape.last();
  p.tensor.data = p.memory.data();
  return {};
}

Status Network::load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                           ScaleScope scope, const FrozenRanges& held) {
  LOOM_TRY(allocate_param(index, dtype));
  Param& p = param(index);
  if (!p.spec.matrix()) return source(0, p.spec.shape.count(), p.tensor.f32());
  const int64_t rows = p.spec.shape[0], cols = p.spec.shape[1];
  const R16 geometry = r16_geometry(p.tensor.dtype, rows, cols);
  const int64_t step = std::max<int64_t>(16, kLoadValues / std::max<int64_t>(cols, 1) / 16 * 16);
  std::vector<float> values(static_cast<size_t>(std::min(step, rows) * cols));
  TensorRange range;
  if (scope == ScaleScope::per_tensor || dtype_info(p.tensor.dtype).scale == ScaleRule::e4m3) {
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      LOOM_TRY(source(row, count, values.data()));
      range = join(range, row * cols, tensor_range(values.data(), count * cols), count * cols);
    }
  }
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t count = std::min(step, rows - row);
    LOOM_TRY(source(row, count, values.data()));
    pool.run([&](int lane, int lanes) {
      const LaneRange mine = lane_range(count, 16, lane, lanes);
      if (mine.begin < mine.end) {
        r16_pack(geometry, values.data() + mine.begin * cols, row + mine.begin,
                 mine.end - mine.begin, scope, range, p.memory.data(), held);
      }
    });
  }
  return {};
}

// Sessions of several threads may check the same parameter concurrently; then it is checked twice.
struct Network::Adopted {
  std::shared_ptr<const void> owner;
  std::function<Status(int index)> check;
  std::vector<std::atomic<bool>> checked;
};

void Network::adopt(std::shared_ptr<const void> owner, std::function<Status(int index)> check) {
  adopted_ = std::make_shared<Adopted>();
  adopted_->owner = std::move(owner);
  adopted_->check = std::move(check);
  adopted_->checked = std::vector<std::atomic<bool>>(params_.size());
}

Status Network::check_param(int index) const {
  if (adopted_ == nullptr || !adopted_->check) return {};
  std::atomic<bool>& checked = adopted_->checked[static_cast<size_t>(index)];
  if (checked.load(std::memory_order_relaxed)) return {};
  LOOM_TRY(adopted_->check(index));
  checked.store(true, std::memory_order_relaxed);
  return {};
}

Status Network::check_node(const Node& node) const {
  for (const int index : node.params) LOOM_TRY(check_param(index));
  for (const Node& child : node.children) LOOM_TRY(check_node(child));
  return {};
}

Status Network::map_param(int index, const Tensor& tensor) {
  Param& p = param(index);
  const Layout layout = p.spec.matrix() ? Layout::r16 : Layout::plain;
  const bool vector = p.spec.matrix() || tensor.dtype == DType::f32;
  if (tensor.layout != layout || !vector || !(tensor.shape == p.spec.shape)) {
    const std::string_view form = tensor.layout == Layout::r16 ? "r16" : dtype_name(tensor.dtype);
    return bad_file(cat("parameter ", p.path, " is ", tensor.shape.str(), " in ", form,
                        ", the network wants ", p.spec.shape.str(),
                        p.spec.matrix() ? " in r16" : " in float32"));
  }
  p.memory = Buffer();
  p.tensor = tensor;
  return {};
}

int64_t Param::bytes() const {
  if (tensor.empty()) return 0;
  if (tensor.layout == Layout::plain) return plain_bytes(tensor.dtype, tensor.shape);
  return r16_geometry(tensor.dtype, tensor.shape[0], tensor.shape[1]).bytes();
}

Status Network::check_loaded() const {
  for (const Param& p : params_) {
    if (p.tensor.empty())
      return make_error(Code::not_found, cat("parameter ", p.path, " was never loaded"));
  }
  return {};
}

}  // namespace loom::core
