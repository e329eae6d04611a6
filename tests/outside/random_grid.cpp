// The choice of kinds is written here and does not follow from the table of kinds. A random layer
// needs fields that fit the input from the cells before it. Every kind here is also written in
// evaluator.cpp. Other kinds are tested by their LayerDef::example (tests/gradients, tests/layers)
// and by results of PyTorch.
#include "outside/random_grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.hpp"
#include "layers/core/graph.hpp"
#include "layers/shapes/broadcast.hpp"

namespace loom::core::outside {
namespace {

using K = LayerKind;

LayerConfig made(K kind, const std::vector<Field>& fields, std::vector<LayerConfig> children = {}) {
  Result<LayerConfig> layer = make_layer(kind, fields, std::move(children));
  EXPECT_TRUE(layer.ok()) << layer.error().str();
  return layer.ok() ? std::move(*layer) : LayerConfig{};
}

class Maker {
 public:
  explicit Maker(const GridOptions& options)
      : options_(options), random_(0x9e3779b97f4a7c15u * (options.seed + 1)) {}

  RandomGrid grid();

 private:
  struct Chosen {
    Cell cell;
    Shape in, out;
    bool awaits = false;  // it reads feedback of the shape `in`, from a cell that is chosen later
  };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + below(static_cast<int64_t>(all.size())));
  }
  int64_t width() { return one_of<int64_t>({3, 4, 5}); }
  std::string activation() {
    if (!options_.smooth && chance(25)) return one_of<const char*>({"relu", "leaky_relu", "relu2"});
    return one_of<const char*>(
        {"linear", "tanh", "sigmoid", "silu", "gelu_tanh", "gelu_erf", "mish", "softplus", "elu"});
  }
  Shape after(const LayerConfig& layer, const Shape& in) {
    const Result<Shape> out = infer_after(layer, in, in);
    EXPECT_TRUE(out.ok()) << out.error().str();
    return out.ok() ? *out : in;
  }

  // A layer for inputs of this shape; keeps: its output has the same shape.
  LayerConfig layer(const Shape& in, int depth, bool keeps);
  LayerConfig plain(const Shape& in, bool keeps);
  LayerConfig over_time(const Shape& in, bool keeps);
  LayerConfig image_layer(const Shape& in, bool keeps);
  LayerConfig container(const Shape& in, int depth, bool keeps);
  LayerConfig parallel(const Shape& in, int depth, bool keeps);
  struct Wiring;
  LayerConfig graph(const Shape& in, int depth, bool keeps);
  size_t any(const Wiring& g, const Shape& shape);
  void add_slice(Wiring& g, size_t from);
  void rearrange(Wiring& g, size_t from, bool keeps);
  bool close(Wiring& g);
  LayerConfig join(const std::vector<Shape>& shapes, bool keeps);
  LayerConfig dense(int64_t in, int64_t out) {
    return made(K::dense, {{"in", in},
                           {"out", out},
                           {"bias", chance(70)},
                           {"activation", activation()},
                           {"soft_cap", chance(10) ? 2.0 : 0.0}});
  }
  Shape sample();
  void add_cell(std::vector<Chosen>& cells, const Shape& input);
  bool add_links(std::vector<Chosen>& cells, const std::vector<Coord>& at, RandomGrid& grid);
  bool add_sources(std::vector<Chosen>& cells);
  void link_awaited(std::vector<Chosen>& cells, const std::vector<Coord>& at, RandomGrid& grid);

  GridOptions options_;
  std::mt19937_64 random_;
};

LayerConfig Maker::plain(const Shape& in, bool keeps) {
  const int64_t d = in.last();
  switch (below(7)) {
    case 0: return made(K::rms_norm, {{"width", d}, {"eps", 1e-3}});
    case 1:
      // Two values are always normalized to -1 and 1; in f32 the gradient is rounding.
      if (options_.smooth && d < 3) return dense(d, keeps ? d : width());
      return made(K::layer_norm, {{"width", d}, {"eps", 1e-3}});
    case 2:
      return made(K::swiglu, {{"width", d},
                              {"inner", width()},
                              {"bias", chance(50)},
                              {"activation", activation()},
                              {"sub_norm", chance(30)},
                              {"sub_norm_eps", 1e-3}});
    case 3: {
      const int64_t kept = below(d);
      std::vector<int64_t> mask(static_cast<size_t>(d));
      for (size_t i = 0; i < mask.size(); ++i) {
        mask[i] = static_cast<int64_t>(i) == kept || chance(60) ? 1 : 0;
      }
      const std::string variant = one_of<const char*>({"standard", "temperature", "masked"});
      const std::vector<Field> fields = {
          {"variant", variant}, {"temperature", one_of({0.5, 1.0, 2.0})}, {"mask", mask}};
      if (d == 4 && !keeps && chance(50))
        return made(K::softmax, {{"variant", "mixture"}, {"rows", 2}, {"cols", 2}});
      if (d == 4 && chance(30))
        return made(K::softmax, {{"variant", "grid"}, {"rows", 2}, {"cols", 2}});
      return made(K::softmax, fields);
    }
    case 4:
      return made(K::kmeans, {{"clusters", keeps ? d : width()},
                              {"width", d},
                              {"temperature", one_of({0.5, 1.0})},
                              {"mode", chance(50) || keeps ? "features" : "probabilities"},
                              {"activation", activation()}});
    default: return dense(d, keeps ? d : width());
  }
}

LayerConfig Maker::over_time(const Shape& in, bool keeps) {
  const int64_t d = in.last();
  const int64_t which = below(options_.shorter ? 4 : 5);
  if (which == 3) {
    const int64_t heads = one_of<int64_t>({1, 2});
    return made(K::multi_head_attention, {{"width", d},
                                          {"heads", heads},
                                          {"kv_heads", chance(50) ? heads : 1},
                                          {"head_dim", 4},
                                          {"bias", chance(50)},
                                          {"out_bias", chance(50)},
                                          {"causal", options_.shorter || chance(60)},
                                          {"rope", false}});
  }
  if (which == 4) {  // steps as channels
    return made(K::cnn1, {{"channels", in[1]},
                          {"filters", keeps ? in[1] : below(3) + 1},
                          {"kernel", 3},
                          {"padding", 1},
                          {"bias", chance(50)},
                          {"activation", activation()}});
  }
  std::vector<Field> fields = {
      {"in", d}, {"hidden", keeps ? d : width()}, {"return_sequence", keeps || chance(70)}};
  if (which == 0) fields.push_back({"activation", one_of<const char*>({"tanh", "sigmoid"})});
  return made(which == 0 ? K::rnn : which == 1 ? K::lstm : K::gru, fields);
}

LayerConfig Maker::image_layer(const Shape& in, bool keeps) {
  const int64_t filters = keeps ? in[1] : one_of<int64_t>({2, 4});
  const bool grouped = in[1] % 2 == 0 && filters % 2 == 0 && chance(40);
  const bool strided = !keeps && in[2] > 2 && chance(30);
  return made(K::cnn2, {{"channels", in[1]},
                        {"filters", filters},
                        {"kernel", 3},
                        {"padding", 1},
                        {"stride", std::vector<int64_t>{1, strided ? 2 : 1}},
                        {"groups", grouped ? 2 : 1},
                        {"bias", chance(50)},
                        {"activation", activation()}});
}

LayerConfig Maker::parallel(const Shape& in, int depth, bool keeps) {
  const bool joins = !keeps && !(options_.shorter && in.rank() > 2);
  std::string combine = one_of<const char*>({"add", "avg", "filter"});
  if (joins && chance(60)) combine = one_of<const char*>({"concat", "grid_scatter"});
  if (combine == "filter" && in.rank() > 2) combine = "avg";
  std::vector<LayerConfig> children;
  std::vector<Field> fields = {{"combine", combine}};
  const int64_t branches = 2 + below(2);
  const bool equal = combine != "concat";
  for (int64_t i = 0; i < branches; ++i) children.push_back(layer(in, depth + 1, equal));
  if (combine == "filter") children.push_back(dense(in.last(), branches));
  if (combine == "grid_scatter") {
    std::vector<int64_t> targets;
    for (int64_t i = 0; i < branches; ++i) {
      targets.push_back(i % 2);
      targets.push_back(1 - i / 2);
    }
    fields.insert(fields.end(), {{"rows", 2}, {"cols", 2}, {"targets", targets}});
  }
  return made(K::parallel, fields, std::move(children));
}

// Combines two values of equal shape to one, or concatenates them along an axis if the output may
// differ from them.
LayerConfig Maker::join(const std::vector<Shape>& shapes, bool keeps) {
  const int rank = shapes[0].rank();
  if (!keeps && chance(40)) {
    // A session of shorter passes cannot join steps: those of one pass would be interleaved.
    const int64_t axis = options_.shorter || chance(50) ? -1 : rank - 1;
    return made(K::concat, {{"axis", rank > 2 && !options_.shorter && chance(40) ? 1 : axis}});
  }
  if (options_.smooth) {
    return made(K::binary, {{"function", one_of<const char*>({"add", "sub", "mul"})}});
  }
  return made(K::binary, {{"function", one_of<const char*>({"add", "sub", "mul", "max", "min"})}});
}

// A graph under way: nodes that each read values before them; more than one may read the same.
struct Maker::Wiring {
  GraphWiring wiring;
  std::vector<LayerConfig> nodes;
  std::vector<GraphValue> values = {{}};
  std::vector<Shape> shapes;
  std::vector<bool> read = {true};

  void add(LayerConfig node, const std::vector<size_t>& from) {
    std::vector<Shape> given;
    std::vector<GraphValue>& edges = wiring.nodes.emplace_back();
    for (const size_t i : from) {
      given.push_back(shapes[i]);
      edges.push_back(values[i]);
      read[i] = true;
    }
    const Result<std::vector<Shape>> out = infer_all(node, given);
    EXPECT_TRUE(out.ok()) << out.error().str();
    nodes.push_back(std::move(node));
    values.push_back({static_cast<int64_t>(nodes.size()) - 1, 0});
    shapes.push_back(out.ok() ? (*out)[0] : shapes[0]);
    read.push_back(false);
  }
  size_t last() const { return values.size() - 1; }
  std::vector<size_t> unread() const {
    std::vector<size_t> all;
    for (size_t i = 1; i < read.size(); ++i) {
      if (!read[i]) all.push_back(i);
    }
    return all;
  }
};

// A value of this shape.
size_t Maker::any(const Wiring& g, const Shape& shape) {
  std::vector<size_t> all;
  for (size_t i = 0; i < g.shapes.size(); ++i) {
    if (g.shapes[i] == shape) all.push_back(i);
  }
  return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
}

// Part of an axis, maybe backwards; a Dense if the axis is too short for it.
void Maker::add_slice(Wiring& g, size_t from) {
  const Shape shape = g.shapes[from];
  const int64_t last = shape.rank() - 1, by = one_of<int64_t>({1, 2, -1});
  const int64_t axis = chance(50) && last > 1 ? last - 1 : last;
  const int64_t extent = shape[static_cast<int>(axis)];
  const int64_t start = by > 0 ? below(extent) : extent - 1;
  const int64_t end = by > 0 ? extent : below(2) - 1;
  if (by < 0 && end >= start) return g.add(dense(shape.last(), width()), {from});
  g.add(made(K::slice, {{"starts", std::vector<int64_t>{start}},
                        {"ends", std::vector<int64_t>{end < 0 ? -extent - 1 : end}},
                        {"axes", std::vector<int64_t>{axis}},
                        {"steps", std::vector<int64_t>{by}}}),
        {from});
}

// Nodes for graphs only. A session of shorter passes excludes nodes that change the order of steps
// or samples, or combine them, because their results would differ.
void Maker::rearrange(Wiring& g, size_t from, bool keeps) {
  const Shape shape = g.shapes[from];
  const int64_t last = shape.rank() - 1, d = shape.last();
  switch (below(keeps || options_.shorter ? 3 : 6)) {
    case 0: {
      const char* function = one_of<const char*>({"tanh", "square", "neg"});
      return g.add(made(K::unary, {{"function", function}}), {from});
    }
    case 1: {
      const char* function = one_of<const char*>({"add", "sub", "mul"});
      g.add(made(K::constant, {{"shape", std::vector<int64_t>{chance(50) ? d : 1}}}), {});
      return g.add(made(K::binary, {{"function", function}}), {from, g.last()});
    }
    case 2: {
      const char* function = one_of<const char*>({"mean", "sum", "sum_squares"});
      g.add(made(K::reduce,
                 {{"function", function}, {"axes", std::vector<int64_t>{-1}}, {"keep", true}}),
            {from});
      return g.add(made(K::binary, {{"function", "mul"}}), {from, g.last()});
    }
    case 3: {
      if (shape.rank() < 3) break;
      std::vector<int64_t> axes = {0, last, last - 1};
      if (shape.rank() == 4) axes.insert(axes.begin() + 1, 1);
      return g.add(made(K::transpose, {{"axes", axes}}), {from});
    }
    case 4: return add_slice(g, from);
    default:
      if (shape.rank() < 3) break;
      return g.add(made(K::matmul, {{"transpose_b", true}}), {from, any(g, shape)});
  }
  g.add(dense(d, keeps ? d : width()), {from});
}

// Combines unused values, so that every node counts. Returns false if they do not fit.
bool Maker::close(Wiring& g) {
  for (;;) {
    const std::vector<size_t> loose = g.unread();
    if (loose.size() == 1) {
      g.wiring.outputs = {g.values[loose[0]]};
      return true;
    }
    const size_t a = loose[0], b = loose[1];
    const Shape x = g.shapes[a], y = g.shapes[b];
    if (x == y || (x.rank() == y.rank() && broadcast_shape(x, y).ok())) {
      const bool adds = x == y || chance(50);
      g.add(made(K::binary, {{"function", adds ? "add" : "mul"}}), {a, b});
      continue;
    }
    // One value per row fits any rows.
    const size_t wider = x.last() > 1 ? a : b;
    if (g.shapes[wider].last() == 1) return false;
    g.add(dense(g.shapes[wider].last(), 1), {wider});
    if (g.shapes.back().rank() != g.shapes[wider].rank()) return false;
  }
}

LayerConfig Maker::graph(const Shape& in, int depth, bool keeps) {
  for (;;) {
    Wiring g;
    g.shapes = {in};
    for (int64_t left = 2 + below(4); left > 0; --left) {
      const auto from = static_cast<size_t>(below(static_cast<int64_t>(g.values.size())));
      const Shape shape = g.shapes[from];
      if (chance(35)) {
        g.add(join({shape, shape}, keeps), {from, any(g, shape)});
      } else if (chance(35)) {
        rearrange(g, from, keeps);
      } else {
        g.add(layer(shape, depth + 1, keeps), {from});
      }
    }
    if (!close(g) || (keeps && !(g.shapes.back() == in))) continue;
    Result<LayerConfig> out = make_graph(g.wiring, std::move(g.nodes));
    EXPECT_TRUE(out.ok()) << out.error().str();
    return out.ok() ? std::move(*out) : plain(in, keeps);
  }
}

LayerConfig Maker::container(const Shape& in, int depth, bool keeps) {
  const int64_t which = below(4);
  if (which == 0) return parallel(in, depth, keeps);
  if (which == 3) return graph(in, depth, keeps);
  std::vector<LayerConfig> children;
  Shape shape = in;
  const bool residual = which == 1;
  for (int64_t left = 1 + below(2); left > 0; --left) {
    children.push_back(layer(shape, depth + 1, keeps || residual));
    const Shape next = after(children.back(), shape);
    if (next == shape && chance(20)) children.push_back(made(K::residual, {}));
    if (chance(10)) {
      children.push_back(plain(next, true));
      children.back().disabled = true;
    }
    shape = next;
  }
  return made(residual ? K::residual : K::sequential, {}, std::move(children));
}

LayerConfig Maker::layer(const Shape& in, int depth, bool keeps) {
  if (depth < 2 && chance(30)) return container(in, depth, keeps);
  if (in.rank() == 4 && chance(60)) return image_layer(in, keeps);
  if (in.rank() == 3 && chance(50)) return over_time(in, keeps);
  return plain(in, keeps);
}

Shape Maker::sample() {
  if (options_.shorter) return Shape{options_.batch, 6, width()};
  switch (below(4)) {
    case 0: return Shape{options_.batch, 2 + below(4), width()};
    case 1: return Shape{options_.batch, 2, 3, 4};
    default: return Shape{options_.batch, width()};
  }
}

void Maker::add_cell(std::vector<Chosen>& cells, const Shape& input) {
  Chosen next;
  next.in = cells.empty() ? input : cells.back().out;
  if (options_.any_width && chance(40)) {
    // Not all values of a sample at once, which a Dense takes too.
    const int64_t all = next.in.count() / next.in[0];
    do next.in[next.in.rank() - 1] = 1 + below(9);
    while (next.in.rank() > 2 && next.in.last() == all);
    next.awaits = true;
  }
  if (options_.sharing && chance(45)) {
    for (const Chosen& other : cells) {
      if (other.in == next.in && !wants_skip(other.cell.layer) && !takes_ids(other.cell.layer)) {
        next.cell.layer = other.cell.layer;
        next.cell.shared_with = Coord{0, 0, 0, &other - cells.data()};  // made a place later
      }
    }
  }
  if (!next.cell.shared_with.has_value()) next.cell.layer = layer(next.in, 0, chance(45));
  // A layer that takes any width does not fix the width of its source.
  Shape wider = next.in;
  ++wider[wider.rank() - 1];
  while (next.awaits && infer_after(next.cell.layer, wider, wider).ok()) {
    next.cell.shared_with.reset();
    next.cell.layer = layer(next.in, 0, chance(45));
  }
  next.out = after(next.cell.layer, next.in);
  cells.push_back(std::move(next));
}

// Cells whose output fits each reader, after all others. Returns false if none can be made.
bool Maker::add_sources(std::vector<Chosen>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const Shape expected = cells[i].in;
    const auto gives = [&](const Chosen& other) { return other.out == expected; };
    if (!cells[i].awaits || std::any_of(cells.begin(), cells.end(), gives)) continue;
    Chosen source{{dense(cells.back().out.last(), expected.last())}, cells.back().out, {}};
    source.out = after(source.cell.layer, source.in);
    if (!(source.out == expected)) return false;
    cells.push_back(std::move(source));
  }
  return true;
}

// Each reader that awaits feedback gets one of the cells that give its shape.
void Maker::link_awaited(std::vector<Chosen>& cells, const std::vector<Coord>& at,
                         RandomGrid& grid) {
  for (Chosen& reader : cells) {
    if (!reader.awaits) continue;
    std::vector<size_t> sources;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].out == reader.in) sources.push_back(i);
    }
    const size_t from = sources[static_cast<size_t>(below(static_cast<int64_t>(sources.size())))];
    reader.cell.link = Link{at[from], true};
    grid.fed_back[*grid.spec.grid.index(at[from])] = reader.in;
    ++grid.feedback_links;
  }
}

// Links between cells of equal shapes. Returns false if there are too few.
bool Maker::add_links(std::vector<Chosen>& cells, const std::vector<Coord>& at, RandomGrid& grid) {
  const auto n = static_cast<int64_t>(cells.size());
  for (int64_t i = 0; i < n; ++i) {
    Chosen& mine = cells[static_cast<size_t>(i)];
    if (mine.cell.shared_with.has_value()) {
      ++grid.shared_cells;
      mine.cell.shared_with = at[static_cast<size_t>(mine.cell.shared_with->l)];
    }
    const bool adds = wants_skip(mine.cell.layer);
    if (mine.awaits) continue;
    if (i == 0 || !chance(adds ? 70 : 35)) continue;
    const int64_t from = below(n);
    const Chosen& source = cells[static_cast<size_t>(from)];
    if (!(source.out == mine.in)) continue;
    const bool feedback = options_.feedback && (from >= i || chance(70));
    if (!feedback && from >= i) continue;
    mine.cell.link = Link{at[static_cast<size_t>(from)], feedback};
    ++(feedback ? grid.feedback_links : grid.skip_links);
  }
  return (!options_.feedback || grid.feedback_links > 0) &&
         (!options_.sharing || grid.shared_cells > 0);
}

RandomGrid Maker::grid() {
  for (;;) {
    RandomGrid out{{GridSpec(1, 1, 1, 1), {}}, 0, 0, 0, 0, {}};
    Shape input = sample();
    std::vector<Chosen> cells;
    if (input.rank() == 3 && chance(20)) {
      out.vocab = 7;
      Chosen table;
      table.in = Shape{input[0], input[1]};
      table.cell.layer = made(K::embedding, {{"vocab", out.vocab},
                                             {"width", input[2]},
                                             {"activation", activation()},
                                             {"scale", one_of({1.0, 2.0})}});
      table.out = input;
      input = table.in;
      cells.push_back(std::move(table));
    }
    const int64_t n = 2 + below(5);
    while (static_cast<int64_t>(cells.size()) < n) {
      add_cell(cells, input);
      const Shape now = cells.back().out;
      const bool room = static_cast<int64_t>(cells.size()) < n;
      if (now.rank() > 2 && room && !options_.shorter && chance(20)) {  // all of a sample at once
        Chosen flat{{dense(now.count() / now[0], width())}, now, {}};
        flat.out = after(flat.cell.layer, now);
        cells.push_back(std::move(flat));
      } else if (room && chance(30)) {
        Chosen sum{{made(K::residual, {})}, now, now};
        if (cells.back().in == now) cells.push_back(std::move(sum));
      }
    }
    if (!add_sources(cells)) continue;
    out.spec.grid = GridSpec(1 + below(3), 1 + below(2), 1 + below(3), 1 + below(3));
    while (out.spec.grid.size() < static_cast<int64_t>(cells.size())) {
      out.spec.grid = GridSpec(out.spec.grid.depth() + 1, out.spec.grid.rows(),
                               out.spec.grid.cols(), out.spec.grid.layers());
    }
    std::vector<Coord> at;
    int64_t left = static_cast<int64_t>(cells.size());
    for (int64_t i = 0; i < out.spec.grid.size() && left > 0; ++i) {
      if (below(out.spec.grid.size() - i) >= left) continue;
      at.push_back(out.spec.grid.coord(i));
      --left;
    }
    link_awaited(cells, at, out);
    if (!add_links(cells, at, out)) continue;
    if (options_.any_width && out.fed_back.empty()) continue;
    for (size_t i = 0; i < cells.size(); ++i) {
      EXPECT_TRUE(out.spec.grid.put(at[i], cells[i].cell).ok());
    }
    out.spec.input = input.rank() == 2   ? Shape{input[1]}
                     : input.rank() == 3 ? Shape{input[1], input[2]}
                                         : Shape{input[1], input[2], input[3]};
    return out;
  }
}

std::string describe(const LayerConfig& layer) {
  std::string text = cat(layer.disabled ? "off " : "", layer.def->name, "{");
  for (size_t i = 0; i < layer.values.size(); ++i) {
    const FieldDesc& desc = layer.def->fields[i];
    const auto field = static_cast<int>(i);
    const bool usual = desc.type == FieldType::text   ? layer.text(field) == desc.default_text
                       : desc.type == FieldType::list ? layer.list(field).empty()
                                                      : layer.real(field) == desc.default_number;
    if (usual) continue;
    text += cat(desc.name, " ");
    if (desc.type == FieldType::text) text += layer.text(field);
    if (desc.type != FieldType::text) text += cat(layer.real(field));
    if (desc.type == FieldType::list) {
      for (const int64_t item : layer.list(field)) text += cat(",", item);
    }
    text += " ";
  }
  text += "}";
  for (const LayerConfig& child : layer.children) text += cat("[", describe(child), "]");
  return text;
}

}  // namespace

RandomGrid random_grid(const GridOptions& options) {
  return Maker(options).grid();
}

std::string RandomGrid::str() const {
  std::string text = cat("input ", spec.input.str(), "\n");
  for (int64_t i = 0; i < spec.grid.size(); ++i) {
    if (spec.grid.cell(i) == nullptr) continue;
    const Cell& cell = *spec.grid.cell(i);
    text += cat("  ", spec.grid.coord(i).str(), " ", describe(cell.layer));
    if (cell.link.has_value())
      text += cat(cell.link->feedback ? " feedback " : " from ", cell.link->from.str());
    if (cell.shared_with.has_value()) text += cat(" shares ", cell.shared_with->str());
    text += "\n";
  }
  return text;
}

}  // namespace loom::core::outside
