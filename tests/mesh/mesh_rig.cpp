#include "mesh/mesh_rig.hpp"

namespace loom::core::mesh_test {
namespace {

using K = LayerKind;

class MeshMaker {
 public:
  MeshMaker(uint64_t seed, bool carried, bool any_width)
      : random_(0x9e3779b97f4a7c15u * (seed + 11)), any_width_(any_width) {
    mesh.options.carry = carried;
  }
  MeshCase mesh;
  void make();

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  LayerConfig dense() {
    static const char* const kNames[] = {"linear", "tanh", "sigmoid", "silu", "softplus"};
    return linear(width_, kNames[below(5)]);
  }
  LayerConfig layer();
  void links(const std::vector<Coord>& positions);
  void widen(const std::vector<Coord>& positions);

  std::mt19937_64 random_;
  bool any_width_;
  int64_t width_ = 3;
};

LayerConfig MeshMaker::layer() {
  const std::vector<Field> recurrent = {
      {"in", width_}, {"hidden", width_}, {"return_sequence", true}};
  switch (below(10)) {
    case 0: return made(K::rms_norm, {{"width", width_}, {"eps", 1e-2}});
    case 1: return made(K::layer_norm, {{"width", width_}, {"eps", 1e-2}});
    case 2: return made(K::rnn, recurrent);
    case 3: return made(K::lstm, recurrent);
    case 4: return made(K::gru, recurrent);
    case 5: return made(K::residual, {});
    case 6:
      return made(
          K::multi_head_attention,
          {{"width", width_}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 4}, {"rope", false}});
    case 7: return made(K::sequential, {}, {dense(), made(K::residual, {})});
    default: return dense();
  }
}

void MeshMaker::links(const std::vector<Coord>& positions) {
  const auto n = static_cast<int64_t>(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) {
    if (!chance(35)) continue;
    MeshLink link;
    link.to = positions[k];
    const Cell* cell = mesh.grid.find(positions[k]);
    const bool two = !cell->layer.disabled && wants_skip(cell->layer);
    link.second = two && chance(70);
    link.delay = chance(50) ? 1 : 1 + below(4);
    const int64_t what = below(10);
    link.from = MeshLink::From::cell;
    if (what == 0) link.from = MeshLink::From::port;
    if (what == 1 && !link.second) link.from = MeshLink::From::as_is;
    if (what == 2 && mesh.options.zero_fill && !cell->layer.disabled)
      link.from = MeshLink::From::none;
    link.cell = positions[static_cast<size_t>(below(n))];
    // A disabled cell that reads only itself has no shape; its own source stays in the order.
    if (cell->layer.disabled && link.from == MeshLink::From::cell) {
      link.cell = positions[static_cast<size_t>(below(static_cast<int64_t>(k) + 1))];
      if (link.cell == link.to) link.from = MeshLink::From::as_is;
    }
    link.port = "other";
    if (link.from == MeshLink::From::port && chance(50)) link.port = "input";
    mesh.options.links.push_back(link);
  }
}

// The last cell has another width. Some Dense cells read it, or a port of the same width.
void MeshMaker::widen(const std::vector<Coord>& positions) {
  int64_t wide = width_ + 1 + below(4);
  if (wide == mesh.input[1] * width_) ++wide;  // all values of a sample, which a Dense takes too
  const Coord last = positions.back();
  const auto reads = [&](int64_t in, int64_t out) {
    return made(K::dense, {{"in", in}, {"out", out}, {"activation", "tanh"}});
  };
  mesh.options.ports.push_back({"wide", Shape{mesh.input[1], wide}});
  Cell source{reads(width_, wide)};
  EXPECT_TRUE(mesh.grid.put(last, std::move(source)).ok());
  std::vector<MeshLink>& all = mesh.options.links;
  std::erase_if(all, [&](const MeshLink& link) { return link.cell == last || link.to == last; });
  for (size_t k = 0; k + 1 < positions.size(); ++k) {
    const Coord at = positions[k];
    const Cell* cell = mesh.grid.find(at);
    const bool dense = cell->layer.def->name == "Dense" && !cell->layer.disabled;
    // Its second input would be the input of the cell before it.
    if (k != 1 && cell->layer.def->name == "Residual") {
      EXPECT_TRUE(mesh.grid.put(at, Cell{this->dense()}).ok());
      std::erase_if(all, [&](const MeshLink& link) { return link.to == at; });
      continue;
    }
    if (k == 0 || (k > 1 && (!dense || !chance(60)))) continue;
    Cell reader{reads(wide, width_)};
    reader.link = Link{last, true};
    EXPECT_TRUE(mesh.grid.put(at, std::move(reader)).ok());
    std::erase_if(all, [&](const MeshLink& link) { return link.to == at; });
    const int64_t delay = chance(50) ? 1 : 1 + below(3);
    if (chance(40)) all.push_back({at, MeshLink::From::port, {}, "wide", delay, false});
    if (chance(30)) all.push_back({at, MeshLink::From::cell, last, "", delay, false});
  }
}

void MeshMaker::make() {
  width_ = 2 + below(3);
  mesh.input = Shape{1 + below(2), 1 + below(3), width_};
  mesh.options.zero_fill = chance(30);
  mesh.options.ports = {{"other", Shape{mesh.input[1], width_}}};
  mesh.grid = GridSpec(1 + below(2), 1 + below(2), 1 + below(3), 1 + below(2));
  std::vector<Coord> positions;
  for (int64_t i = 0; i < mesh.grid.size(); ++i) {
    if (chance(15) && i + 1 < mesh.grid.size()) continue;
    Cell cell{layer()};
    cell.layer.disabled = !positions.empty() && chance(15);
    // A link in the grid itself: feedback links are treated like other links.
    if (!positions.empty() && !cell.layer.disabled && chance(15)) {
      const Coord from =
          positions[static_cast<size_t>(below(static_cast<int64_t>(positions.size())))];
      if (!mesh.grid.find(from)->layer.disabled) cell.link = Link{from, chance(50)};
    }
    positions.push_back(mesh.grid.coord(i));
    EXPECT_TRUE(mesh.grid.put(positions.back(), std::move(cell)).ok());
  }
  links(positions);
  if (any_width_ && positions.size() > 2) widen(positions);
}

// The path of a parameter with the path of another cell in front.
std::string moved(const std::string& path, const std::string& from, const std::string& to) {
  return path.compare(0, from.size() + 1, from + "/") == 0 ? to + path.substr(from.size())
                                                           : std::string();
}

}  // namespace

LayerConfig made(LayerKind kind, const std::vector<Field>& fields,
                 std::vector<LayerConfig> children) {
  Result<LayerConfig> layer = make_layer(kind, fields, std::move(children));
  EXPECT_TRUE(layer.ok()) << layer.error().str();
  return layer.ok() ? std::move(*layer) : LayerConfig{};
}

LayerConfig linear(int64_t width, const std::string& activation) {
  return made(LayerKind::dense, {{"in", width}, {"out", width}, {"activation", activation}});
}

MeshCase random_mesh(uint64_t seed, bool carried, bool any_width) {
  MeshMaker maker(seed, carried, any_width);
  maker.make();
  return std::move(maker.mesh);
}

std::string MeshCase::str() const {
  std::string text = cat("input ", input.str(), options.zero_fill ? ", zero-fill" : "",
                         options.carry ? ", carry" : "", "\n");
  for (int64_t i = 0; i < grid.size(); ++i) {
    const Cell* cell = grid.cell(i);
    if (cell == nullptr) continue;
    text += cat(grid.coord(i).str(), " ", cell->layer.def->name,
                cell->layer.disabled ? " (disabled)" : "");
    if (cell->link.has_value()) text += cat(" <- ", cell->link->from.str());
    text += "\n";
  }
  for (const MeshLink& link : options.links) {
    text += cat("link to ", link.to.str(), link.second ? " (second)" : "", " from ",
                static_cast<int>(link.from), " ", link.cell.str(), " ", link.port, ", delay ",
                link.delay, "\n");
  }
  return text;
}

ScalarMesh::ScalarMesh(const MeshCase& mesh, const Network& network, Tape* tape) : mesh_(mesh) {
  Evaluator all(mesh.grid, mesh.input[0]);
  outside::fill_params(all, network, tape);
  params = all.params;
  int64_t before = -1;
  for (int64_t i = 0; i < mesh.grid.size(); ++i) {
    const Cell* cell = mesh.grid.cell(i);
    if (cell == nullptr) continue;
    CellState& c = cells_[i];
    c.layer = &cell->layer;
    c.disabled = cell->layer.disabled;
    const std::string_view name = cell->layer.def->name;
    c.two = !c.disabled && name == "Residual" && cell->layer.children.empty();
    c.carried = mesh.options.carry && (name == "RNN" || name == "LSTM" || name == "GRU");
    c.params = mesh.grid.coord(i).str();
    c.extents = outside::extents(mesh.input);
    if (!c.disabled && name == "Dense") c.extents.back() = cell->layer.integer(0);
    EXPECT_TRUE(c.alone.put({0, 0, 0, 0}, Cell{cell->layer}).ok());
    c.first =
        before < 0 ? Source{MeshLink::From::port, 0, 1} : Source{MeshLink::From::cell, before, 1};
    if (cell->link.has_value()) {
      Source& linked = c.two ? c.second : c.first;
      linked.from = MeshLink::From::cell;
      linked.index = *mesh.grid.index(cell->link->from);
      c.has_second = c.two;
    }
    before = i;
  }
  for (const MeshLink& change : mesh.options.links) link(change);
  outputs_.emplace_back();
  used_.emplace_back();
  ports_.emplace_back();
}

void ScalarMesh::link(const MeshLink& change) {
  CellState& c = cells_.at(*mesh_.grid.index(change.to));
  Source& s = change.second ? c.second : c.first;
  c.has_second = c.has_second || change.second;
  s.delay = change.delay;
  if (change.from == MeshLink::From::as_is) return;
  s.from = change.from;
  if (change.from == MeshLink::From::cell) s.index = *mesh_.grid.index(change.cell);
  if (change.from == MeshLink::From::port) {
    s.index = 0;
    for (size_t p = 0; p < mesh_.options.ports.size(); ++p) {
      if (mesh_.options.ports[p].name == change.port) s.index = static_cast<int64_t>(p) + 1;
    }
  }
}

const std::optional<Array>& ScalarMesh::at(int64_t t, int64_t i) const {
  static const std::optional<Array> nothing;
  if (t < 1) return nothing;
  const auto& tick = outputs_[static_cast<size_t>(t)];
  const auto found = tick.find(i);
  EXPECT_TRUE(found != tick.end()) << "tick " << t << " has no cell " << i;
  return found != tick.end() ? found->second : nothing;
}

// The value of a source in tick t.
std::optional<Array> ScalarMesh::value(const Source& s, int64_t t) const {
  if (s.from == MeshLink::From::port) {
    const int64_t offered = t - (s.delay - 1);
    if (offered < 1) return std::nullopt;
    return ports_[static_cast<size_t>(offered)][static_cast<size_t>(s.index)];
  }
  if (s.from == MeshLink::From::cell) return at(t - s.delay, s.index);
  return std::nullopt;
}

// The input of the layer that made that value, when it was made. Disabled cells do not count as
// layers.
std::optional<Array> ScalarMesh::source_value(const Source& s, int64_t t) const {
  if (s.from != MeshLink::From::cell) return value(s, t);
  const int64_t then = t - s.delay;
  if (then < 1) return std::nullopt;
  const CellState& c = cells_.at(s.index);
  if (c.disabled) return source_value(c.first, then);
  const auto found = used_[static_cast<size_t>(then)].find(s.index);
  if (found == used_[static_cast<size_t>(then)].end()) return std::nullopt;
  return found->second;
}

Array ScalarMesh::run(CellState& cell, const Array& x) {
  Evaluator one(cell.alone, mesh_.input[0]);
  for (const auto& [path, values] : params) {
    const std::string own = moved(path, cell.params, "(0, 0, 0, 0)");
    if (!own.empty()) one.params[own] = values;
  }
  return one.pass(x, cell.carried ? &cell.memory : nullptr);
}

void ScalarMesh::tick(const std::vector<Array>& ports) {
  ports_.push_back(ports);
  const auto t = static_cast<int64_t>(outputs_.size());
  std::map<int64_t, std::optional<Array>> now;
  std::map<int64_t, Array> read;
  for (auto& [i, cell] : cells_) {
    std::optional<Array> in = value(cell.first, t);
    if (!in.has_value() && mesh_.options.zero_fill) in = outside::array_of(cell.extents);
    now[i] = std::nullopt;
    if (!in.has_value()) continue;
    read[i] = *in;
    if (cell.disabled) {
      now[i] = in;
    } else if (cell.two) {
      std::optional<Array> other =
          cell.has_second ? value(cell.second, t) : source_value(cell.first, t);
      Array sum = *in;
      for (size_t v = 0; other.has_value() && v < sum.v.size(); ++v)
        sum.v[v] = sum.v[v] + other->v[v];
      now[i] = sum;
    } else {
      now[i] = run(cell, *in);
    }
  }
  outputs_.push_back(std::move(now));
  used_.push_back(std::move(read));
}

void ScalarMesh::detach() {
  const auto constant = [](Array& a) {
    for (Var& v : a.v) v = Var(v.value);
  };
  for (auto& tick : outputs_) {
    for (auto& [i, array] : tick) {
      if (array.has_value()) constant(*array);
    }
  }
  for (auto& tick : used_) {
    for (auto& [i, array] : tick) constant(array);
  }
  for (auto& tick : ports_) {
    for (Array& array : tick) constant(array);
  }
  for (auto& [i, cell] : cells_) {
    for (auto& [path, states] : cell.memory.states) {
      for (auto& one : states) {
        for (Var& v : one) v = Var(v.value);
      }
    }
  }
}

double* value_at(const Tensor& t, int64_t i) {
  if (t.layout == Layout::plain) return t.values<double>() + i;
  const R16 g = r16_geometry(t.dtype, t.shape[0], t.shape[1]);
  const int64_t row = i / g.cols, k = i % g.cols;
  return reinterpret_cast<double*>(t.data + row / 16 * g.group_bytes + g.codes +
                                   (k * 16 + row % 16) * 8);
}

Result<Network> f64_network(const MeshCase& mesh) {
  LOOM_ASSIGN(Network network, Network::finalize(mesh.grid, mesh.input));
  for (size_t i = 0; i < network.params().size(); ++i) {
    LOOM_TRY(network.allocate_param(static_cast<int>(i), DType::f64, DType::f64));
    const std::vector<double> values = outside::param_values(network, i);
    for (size_t k = 0; k < values.size(); ++k)
      *value_at(network.params()[i].tensor, static_cast<int64_t>(k)) = values[k];
  }
  return network;
}

Result<Network> packed_network(const MeshCase& mesh, DType dtype, ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(mesh.grid, mesh.input));
  for (size_t i = 0; i < network.params().size(); ++i) {
    const std::vector<double> values = outside::param_values(network, i);
    const Param& p = network.params()[i];
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t k = 0; k < count * cols; ++k)
        out[k] = static_cast<float>(values[static_cast<size_t>(first * cols + k)]);
      return {};
    };
    LOOM_TRY(network.load_param(static_cast<int>(i), dtype, rows, pool));
  }
  return network;
}

std::vector<double> port_values(const Shape& shape, int64_t t, size_t port) {
  return outside::numbers(shape.count(), 5000 + 100 * static_cast<uint64_t>(t) + port);
}

}  // namespace loom::core::mesh_test
