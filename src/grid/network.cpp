#include "grid/network.hpp"

#include <algorithm>

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
  params_.push_back({cat(path, "/", spec.name), spec, {}, {}});
  return static_cast<int>(params_.size()) - 1;
}

Result<Node> Network::add_node(const LayerConfig& config, const std::string& path,
                               const Node* owner) {
  Node node;
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

Result<Network> Network::finalize(const GridSpec& spec, const Shape& input) {
  Network net;
  Shape shape = input;
  std::string previous = "the input";
  for (int64_t i = 0; i < spec.size(); ++i) {
    const std::optional<Cell>& cell = spec.cell(i);
    if (!cell.has_value() || cell->layer.disabled) continue;
    const Coord at = spec.coord(i);
    Result<Shape> out = infer_shape(cell->layer, shape);
    if (!out.ok()) {
      Error error = out.error();
      error.message = cat("cell ", at.str(), " does not fit ", previous, ": ", error.message);
      return error;
    }
    const Node* owner = nullptr;
    if (cell->shared_with.has_value()) {
      for (const GridNode& other : net.cells_) {
        if (other.at == *cell->shared_with) owner = &other.node;
      }
      if (owner == nullptr) {
        return invalid(cat("cell ", at.str(), " shares weights with ", cell->shared_with->str(),
                           ", which is no layer before it"));
      }
    }
    LOOM_ASSIGN(Node node, net.add_node(cell->layer, at.str(), owner));
    net.cells_.push_back({at, shape, *out, std::move(node)});
    shape = *out;
    previous = cat("cell ", at.str());
  }
  if (net.cells_.empty()) return invalid("the grid has no enabled layer; put at least one");
  return net;
}

int Network::find_param(std::string_view path) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].path == path) return static_cast<int>(i);
  }
  return -1;
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

Status Network::load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                           ScaleScope scope) {
  Param& p = params_[static_cast<size_t>(index)];
  if (!p.spec.matrix()) {
    LOOM_ASSIGN(p.memory, Buffer::allocate(p.spec.shape.count() * 4));
    p.tensor = f32_vector(reinterpret_cast<float*>(p.memory.data()), p.spec.shape.count());
    return source(0, p.spec.shape.count(), p.tensor.f32());
  }
  const int64_t rows = p.spec.shape[0], cols = p.spec.shape[1];
  const R16 geometry = r16_geometry(dtype, rows, cols);
  LOOM_ASSIGN(p.memory, Buffer::allocate(geometry.bytes()));
  p.tensor = r16_tensor(geometry, p.memory.data());
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
    pool.run([&](int lane) {
      const LaneRange mine = lane_range(count, 16, lane, pool.lanes());
      if (mine.begin < mine.end) {
        r16_pack(geometry, values.data() + mine.begin * cols, row + mine.begin,
                 mine.end - mine.begin, scope, range, p.memory.data());
      }
    });
  }
  return {};
}

Status Network::check_loaded() const {
  for (const Param& p : params_) {
    if (p.tensor.empty())
      return make_error(Code::not_found, cat("parameter ", p.path, " was never loaded"));
  }
  return {};
}

}  // namespace loom
