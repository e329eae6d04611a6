#include "grid/network.hpp"

#include <algorithm>
#include <atomic>

#include "base/text.hpp"

namespace loom {
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
  // Zeros lie on every grid.
  if (a.mean_abs == 0) r.grid = b.grid;
  if (b.mean_abs == 0 || a.grid == b.grid) r.grid = a.grid;
  return r;
}

}  // namespace

Result<int> Network::param_for(const ParamSpec& spec, const std::string& path, const Node* owner) {
  if (owner != nullptr && spec.matrix()) {
    for (int index : owner->params) {
      const Param& shared = params_[static_cast<size_t>(index)];
      if (shared.spec.name != spec.name) continue;
      if (shared.spec.shape == spec.shape) return index;
      return invalid(cat("cannot share ", shared.path, " ", shared.spec.shape.str(), " as ", path,
                         "/", spec.name, " ", spec.shape.str(), ": the shapes differ"));
    }
    return invalid(cat("cannot share weights with ", path, ": the other cell has no matrix called ",
                       spec.name));
  }
  params_.push_back({cat(path, "/", spec.name), spec, {}, {}, {}});
  return static_cast<int>(params_.size()) - 1;
}

Result<Node> Network::add_node(const LayerConfig& config, const std::string& path,
                               const Node* owner) {
  Node node;
  node.id = nodes_++;
  node.config.def = config.def;
  node.config.values = config.values;
  node.config.disabled = config.disabled;
  node.config.children = config.children;
  const LayerDef& def = *config.def;
  if (def.params != nullptr) {
    std::vector<ParamSpec> specs;
    def.params(config, specs);
    for (const ParamSpec& spec : specs) {
      LOOM_ASSIGN(const int index, param_for(spec, path, owner));
      node.params.push_back(index);
    }
  }
  if (def.rope != nullptr) {
    const RopeSpec rope = def.rope(config);
    const auto at = std::find(ropes_.begin(), ropes_.end(), rope);
    node.rope = static_cast<int>(at - ropes_.begin());
    if (at == ropes_.end()) ropes_.push_back(rope);
  }
  if (def.state != nullptr) {
    node.state = static_cast<int>(states_.size());
    states_.push_back(def.state(config));
  }
  for (size_t i = 0; i < config.children.size(); ++i) {
    LOOM_ASSIGN(Node child, add_node(config.children[i], cat(path, "/", i), nullptr));
    node.children.push_back(std::move(child));
  }
  return node;
}

// Finds the cell a link names and checks that the pass order allows it.
Status Network::resolve_link(const GridSpec& spec, const Cell& cell, GridNode& node) {
  const Link& link = *cell.link;
  const Cell* target = spec.find(link.from);
  if (target == nullptr || target->layer.disabled) {
    return invalid(cat("cell ", node.at.str(), " is linked to ", link.from.str(),
                       ", where there is no enabled layer"));
  }
  LOOM_ASSIGN(const int64_t mine, spec.index(node.at));
  LOOM_ASSIGN(const int64_t theirs, spec.index(link.from));
  if (!link.feedback && theirs == mine) {
    return invalid(cat("cell ", node.at.str(),
                       " cannot be linked to itself; make the link a feedback link to take what "
                       "the previous pass gave"));
  }
  if (!link.feedback && theirs > mine) {
    return invalid(cat("cell ", node.at.str(), " is linked to ", link.from.str(),
                       ", which comes after it, so each would wait for the other; make the link a "
                       "feedback link to take what the previous pass gave"));
  }
  has_links_ = true;
  node.feedback = link.feedback;
  node.skip = wants_skip(cell.layer);
  node.link = 0;  // enabled cells before the target
  for (int64_t i = 0; i < theirs; ++i) {
    const std::optional<Cell>& other = spec.cell(i);
    if (other.has_value() && !other->layer.disabled) ++node.link;
  }
  return {};
}

// `guesses`: by flat index, the shape that a feedback link brings (rank 0: that of the cell
// before).
Status Network::add_cell(const GridSpec& spec, int64_t index, const std::vector<Shape>& guesses) {
  const Cell& cell = *spec.cell(index);
  GridNode node;
  node.at = spec.coord(index);
  Shape in = cells_.empty() ? input_ : cells_.back().out;
  Shape skip = cells_.empty() ? input_ : cells_.back().in;
  std::string from = cells_.empty() ? "the input" : cat("cell ", cells_.back().at.str());
  if (cell.link.has_value()) {
    LOOM_TRY(resolve_link(spec, cell, node));
    const Shape& guess = guesses[static_cast<size_t>(index)];
    Shape linked = guess.rank() > 0 ? guess : in;
    if (!node.feedback) linked = cells_[static_cast<size_t>(node.link)].out;
    (node.skip ? skip : in) = linked;
    if (!node.skip) from = cat("cell ", cell.link->from.str());
  }
  Result<Shape> out = infer_after(cell.layer, in, skip);
  if (!out.ok()) {
    Error error = out.error();
    error.message = cat("cell ", node.at.str(), " does not fit ", from, ": ", error.message);
    return error;
  }
  const Node* owner = nullptr;
  if (cell.shared_with.has_value()) {
    for (const GridNode& other : cells_) {
      if (other.at == *cell.shared_with) owner = &other.node;
    }
    if (owner == nullptr) {
      return invalid(cat("cell ", node.at.str(), " shares weights with ", cell.shared_with->str(),
                         ", which is no layer before it"));
    }
  }
  const size_t first_param = params_.size();
  LOOM_ASSIGN(node.node, add_node(cell.layer, node.at.str(), owner));
  for (size_t i = first_param; i < params_.size(); ++i) params_[i].dtype = cell.dtype;
  node.in = in;
  node.out = *out;
  cells_.push_back(std::move(node));
  return {};
}

// A feedback link may come from a cell whose shape is known only once all cells are there: the
// first attempt takes the shape of the cell before, the next ones what the attempt before found.
Result<Network> Network::finalize(const GridSpec& spec, const Shape& input) {
  constexpr int kAttempts = 3;
  std::vector<Shape> guesses(static_cast<size_t>(spec.size()));
  for (int attempt = 1;; ++attempt) {
    Network net;
    net.input_ = input;
    for (int64_t i = 0; i < spec.size(); ++i) {
      const std::optional<Cell>& cell = spec.cell(i);
      if (!cell.has_value() || cell->layer.disabled) continue;
      LOOM_TRY(net.add_cell(spec, i, guesses));
    }
    if (net.cells_.empty()) return invalid("the grid has no enabled layer; put at least one");
    const GridNode* bad = nullptr;
    for (const GridNode& node : net.cells_) {
      if (node.link < 0 || !node.feedback) continue;
      const Shape& brought = net.cells_[static_cast<size_t>(node.link)].out;
      if (brought == node.in) continue;  // a skip has the shape of the input
      bad = &node;
      LOOM_ASSIGN(const int64_t at, spec.index(node.at));
      guesses[static_cast<size_t>(at)] = brought;
    }
    if (bad == nullptr) return net;
    if (attempt == kAttempts) {
      const GridNode& from = net.cells_[static_cast<size_t>(bad->link)];
      return invalid(cat("cell ", bad->at.str(), " takes ", bad->in.str(),
                         ", but the feedback from ", from.at.str(), " brings ", from.out.str()));
    }
  }
}

int Network::find_param(std::string_view path) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].path == path) return static_cast<int>(i);
  }
  return -1;
}

// A layer that takes ids begins with its table.
int64_t Network::vocab() const {
  return takes_ids(cells_[0].node.config) ? params_[0].spec.shape[0] : 0;
}

int64_t Network::param_count() const {
  int64_t count = 0;
  for (const Param& p : params_) count += p.spec.shape.count();
  return count;
}

int64_t Network::param_bytes() const {
  int64_t bytes = 0;
  for (const Param& p : params_) bytes += p.bytes();
  return bytes;
}

Status Network::allocate_param(int index, DType dtype, DType vectors) {
  Param& p = param(index);
  if (p.spec.matrix()) {
    const R16 geometry = r16_geometry(dtype, p.spec.shape[0], p.spec.shape[1]);
    LOOM_ASSIGN(p.memory, Buffer::allocate(geometry.bytes()));
    p.tensor = r16_tensor(geometry, p.memory.data());
    return {};
  }
  LOOM_ASSIGN(p.memory, Buffer::allocate(plain_bytes(vectors, p.spec.shape)));
  p.tensor = Tensor{};
  p.tensor.dtype = vectors;
  p.tensor.shape = p.spec.shape;
  p.tensor.row_stride = p.spec.shape.last();
  p.tensor.data = p.memory.data();
  return {};
}

Status Network::load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                           ScaleScope scope, const HeldRanges& held) {
  LOOM_TRY(allocate_param(index, dtype));
  Param& p = param(index);
  if (!p.spec.matrix()) return source(0, p.spec.shape.count(), p.tensor.f32());
  const int64_t rows = p.spec.shape[0], cols = p.spec.shape[1];
  const R16 geometry = r16_geometry(dtype, rows, cols);
  const int64_t step = std::max<int64_t>(16, kLoadValues / std::max<int64_t>(cols, 1) / 16 * 16);
  std::vector<float> values(static_cast<size_t>(std::min(step, rows) * cols));
  TensorRange range;
  if (scope == ScaleScope::per_tensor || dtype_info(dtype).scale == ScaleRule::e4m3) {
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

// Sessions of several threads may come to the same parameter at once: then it is checked twice.
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

}  // namespace loom
