// Mutations of whole networks: grid_genome.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.hpp"
#include "evolve/networks/grid_genome.hpp"

namespace loom::core {
namespace {

constexpr const char* kChangeNames[] = {"widen",      "narrow",     "deepen", "block",
                                        "remove",     "activation", "toggle", "connect",
                                        "disconnect", "retype",     "perturb"};
static_assert(std::size(kChangeNames) == kGridChanges);

bool is_dense(const LayerConfig& c) {
  return c.def->kind == LayerKind::dense;
}

int field_at(const LayerConfig& c, std::string_view name) {
  for (size_t i = 0; i < c.def->fields.size(); ++i) {
    if (c.def->fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t whole_field(const LayerConfig& c, std::string_view name) {
  return c.integer(field_at(c, name));
}

void set_field(LayerConfig& c, std::string_view name, int64_t value) {
  c.values[static_cast<size_t>(field_at(c, name))].number = static_cast<double>(value);
}

// Parallel Dense branches with a sum: the result of `connect` on a Dense.
bool is_added(const LayerConfig& c) {
  return c.def->kind == LayerKind::parallel && c.text(field_at(c, "combine")) == "add" &&
         !c.children.empty() && std::ranges::all_of(c.children, is_dense);
}

// The Dense layers of a cell, with the location of their parameters; empty for other cells.
struct DensePart {
  LayerConfig* layer;
  std::string prefix;
};
std::vector<DensePart> dense_parts(GeneCell& cell) {
  std::vector<DensePart> out;
  if (cell.layer.disabled) return out;
  if (is_dense(cell.layer)) out.push_back({&cell.layer, ""});
  if (!is_added(cell.layer)) return out;
  for (size_t i = 0; i < cell.layer.children.size(); ++i)
    out.push_back({&cell.layer.children[i], cat(i, "/")});
  return out;
}

// Whether the units of a cell can change, because only Dense layers read them.
bool has_free_width(GridGenome& g, size_t k) {
  if (k + 1 >= g.cells.size()) return false;
  const std::vector<DensePart> makes = dense_parts(g.cells[k]);
  const std::vector<DensePart> reads = dense_parts(g.cells[k + 1]);
  if (makes.empty() || reads.empty()) return false;
  const int64_t width = whole_field(*makes[0].layer, "out");
  return std::ranges::all_of(
      reads, [&](const DensePart& p) { return whole_field(*p.layer, "in") == width; });
}

// Rows of [old, width] by their indices.
std::vector<float> rows_taken(const std::vector<float>& from, size_t width,
                              const std::vector<size_t>& rows) {
  std::vector<float> out;
  out.reserve(rows.size() * width);
  for (const size_t r : rows)
    out.insert(out.end(), from.begin() + static_cast<std::ptrdiff_t>(r * width),
               from.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
  return out;
}

class GridChanger {
 public:
  GridChanger(GridGenome& genome, const GridRates& rates, Draws& draws)
      : g_(genome), rates_(rates), draws_(draws) {}

  // Applies a change and describes it; empty if it does not apply to the chosen cell.
  std::string make(GridChange change) {
    const size_t k = draws_.below(g_.cells.size());
    switch (change) {
      case GridChange::widen: return widen(k);
      case GridChange::narrow: return narrow(k);
      case GridChange::deepen: return deepen(k);
      case GridChange::block: return block(k);
      case GridChange::remove: return remove(k);
      case GridChange::activation: return activation(k);
      case GridChange::toggle: return toggle(k);
      case GridChange::connect: return connect(k);
      case GridChange::disconnect: return disconnect(k);
      case GridChange::retype: return retype(k);
      default: return perturb(k);
    }
  }

 private:
  // Replaces the units of cell k by those with these indices, and scales the next cell's weights
  // for each by its factor.
  void take_units(size_t k, const std::vector<size_t>& units, const std::vector<float>& factors) {
    for (const DensePart& p : dense_parts(g_.cells[k])) {
      auto& values = g_.cells[k].values;
      const auto width = static_cast<size_t>(whole_field(*p.layer, "in"));
      values[p.prefix + "weight"] = rows_taken(values[p.prefix + "weight"], width, units);
      if (values.contains(p.prefix + "bias"))
        values[p.prefix + "bias"] = rows_taken(values[p.prefix + "bias"], 1, units);
      set_field(*p.layer, "out", static_cast<int64_t>(units.size()));
    }
    for (const DensePart& p : dense_parts(g_.cells[k + 1])) {
      std::vector<float>& weight = g_.cells[k + 1].values[p.prefix + "weight"];
      const auto before = static_cast<size_t>(whole_field(*p.layer, "in"));
      std::vector<float> next;
      for (size_t row = 0; row * before < weight.size(); ++row) {
        for (size_t i = 0; i < units.size(); ++i)
          next.push_back(weight[row * before + units[i]] * factors[i]);
      }
      weight = std::move(next);
      set_field(*p.layer, "in", static_cast<int64_t>(units.size()));
    }
  }

  bool has_values(size_t k) {
    return std::ranges::all_of(dense_parts(g_.cells[k]), [&](const DensePart& p) {
      return g_.cells[k].values.contains(p.prefix + "weight");
    });
  }

  // A unit and its copy share the weights of the next layer in unequal parts; otherwise both would
  // always have the same gradient.
  std::string widen(size_t k) {
    if (!has_free_width(g_, k) || !has_values(k) || !has_values(k + 1)) return {};
    const auto width = static_cast<size_t>(whole_field(*dense_parts(g_.cells[k])[0].layer, "out"));
    const size_t more = std::max<size_t>(
        1, static_cast<size_t>(static_cast<double>(width) * (0.1 + 0.4 * draws_.unit())));
    if (static_cast<int64_t>(width + more) > rates_.max_width) return {};
    std::vector<size_t> units(width);
    std::iota(units.begin(), units.end(), size_t{0});
    std::vector<float> factors(width, 1.0f);
    std::vector<size_t> order = units;
    for (size_t i = 0; i < std::min(more, width); ++i) {
      std::swap(order[i], order[i + draws_.below(width - i)]);
      const auto part = static_cast<float>(0.25 + 0.5 * draws_.unit());
      units.push_back(order[i]);
      factors.push_back(part);
      factors[order[i]] = 1 - part;
    }
    take_units(k, units, factors);
    return cat("widen cell ", k, ": ", width, " to ", units.size(), " units");
  }

  std::string narrow(size_t k) {
    if (!has_free_width(g_, k) || !has_values(k) || !has_values(k + 1)) return {};
    const auto width = static_cast<size_t>(whole_field(*dense_parts(g_.cells[k])[0].layer, "out"));
    if (width < 2) return {};
    const size_t fewer = std::clamp<size_t>(
        static_cast<size_t>(static_cast<double>(width) * (0.1 + 0.3 * draws_.unit())), 1,
        width - 1);
    std::vector<double> heeded(width, 0);
    for (const DensePart& p : dense_parts(g_.cells[k + 1])) {
      const std::vector<float>& weight = g_.cells[k + 1].values[p.prefix + "weight"];
      for (size_t i = 0; i < weight.size(); ++i)
        heeded[i % width] += static_cast<double>(weight[i]) * static_cast<double>(weight[i]);
    }
    std::vector<size_t> units(width);
    std::iota(units.begin(), units.end(), size_t{0});
    std::ranges::stable_sort(units, std::greater<>(), [&](size_t u) { return heeded[u]; });
    units.resize(width - fewer);
    std::ranges::sort(units);
    take_units(k, units, std::vector<float>(units.size(), 1.0f));
    return cat("narrow cell ", k, ": ", width, " to ", units.size(), " units");
  }

  // The new layer is inserted after cell k, whose output is [batch, width].
  std::optional<int64_t> width_behind(size_t k) {
    if (static_cast<int64_t>(g_.cells.size()) >= rates_.max_cells) return std::nullopt;
    const Result<Network> network = g_.finalized(1);
    if (!network.ok() || network->cells().size() != g_.cells.size()) return std::nullopt;
    const Shape& out = network->cells()[k].out;
    if (out.rank() != 2 || out.last() > rates_.max_width) return std::nullopt;
    return out.last();
  }

  void insert(size_t k, GeneCell cell) {
    g_.cells.insert(g_.cells.begin() + static_cast<std::ptrdiff_t>(k) + 1, std::move(cell));
  }

  std::string deepen(size_t k) {
    if (k + 1 >= g_.cells.size() || !is_dense(g_.cells[k].layer)) return {};
    const LayerConfig& before = g_.cells[k].layer;
    if (before.disabled || before.text(field_at(before, "activation")) != "relu") return {};
    const std::optional<int64_t> width = width_behind(k);
    if (!width) return {};
    const auto n = static_cast<size_t>(*width);
    const auto layer =
        make_layer(LayerKind::dense, {{"in", *width}, {"out", *width}, {"activation", "relu"}});
    if (!layer.ok()) return {};
    std::vector<float> one(n * n, 0.0f);
    for (size_t i = 0; i < n; ++i) one[i * n + i] = 1.0f;
    insert(k, {*layer, {}, {{"weight", std::move(one)}, {"bias", std::vector<float>(n, 0.0f)}}});
    return cat("deepen after cell ", k, ": ", n, " units");
  }

  std::string block(size_t k) {
    if (k + 1 >= g_.cells.size()) return {};
    const std::optional<int64_t> width = width_behind(k);
    if (!width) return {};
    const int64_t inner = std::max<int64_t>(1, *width / 2);
    const char* const kinds[] = {"relu", "silu", "tanh"};
    const char* kind = kinds[draws_.below(3)];
    auto first =
        make_layer(LayerKind::dense, {{"in", *width}, {"out", inner}, {"activation", kind}});
    auto second = make_layer(LayerKind::dense, {{"in", inner}, {"out", *width}});
    if (!first.ok() || !second.ok()) return {};
    const auto layer = make_layer(LayerKind::residual, {}, {*first, *second});
    if (!layer.ok()) return {};
    const auto n = static_cast<size_t>(*width), m = static_cast<size_t>(inner);
    std::vector<float> in(n * m);
    const double most = std::sqrt(6.0 / static_cast<double>(n + m));
    for (float& v : in) v = draws_.around(most);
    insert(k, {*layer,
               {},
               {{"0/weight", std::move(in)},
                {"0/bias", std::vector<float>(m, 0.0f)},
                {"1/weight", std::vector<float>(n * m, 0.0f)},
                {"1/bias", std::vector<float>(n, 0.0f)}}});
    return cat("block after cell ", k, ": ", n, "-", m, " ", kind, "-", n);
  }

  // Whether input and output shapes are equal, so that the chain is valid without it.
  bool passes(size_t k) {
    const Result<Network> network = g_.finalized(1);
    if (!network.ok() || network->cells().size() != g_.cells.size()) return false;
    return network->cells()[k].in == network->cells()[k].out;
  }

  std::string remove(size_t k) {
    if (g_.cells.size() < 2 || !passes(k)) return {};
    g_.cells.erase(g_.cells.begin() + static_cast<std::ptrdiff_t>(k));
    return cat("remove cell ", k);
  }

  std::string activation(size_t k) {
    if (k + 1 >= g_.cells.size() || g_.cells[k].layer.disabled) return {};
    LayerConfig& layer = g_.cells[k].layer;
    const int at = field_at(layer, "activation");
    if (at < 0) return {};
    const char* const kinds[] = {"relu", "leaky_relu", "silu", "gelu_tanh", "tanh", "sigmoid"};
    const std::string before(layer.text(at));
    const char* kind = kinds[draws_.below(std::size(kinds))];
    if (before == kind) return {};
    layer.set_text(at, kind);
    return cat("activation of cell ", k, ": ", before, " to ", kind);
  }

  std::string toggle(size_t k) {
    LayerConfig& layer = g_.cells[k].layer;
    if (k + 1 >= g_.cells.size() || (!layer.disabled && !passes(k))) return {};
    layer.disabled = !layer.disabled;
    return cat(layer.disabled ? "disable" : "enable", " cell ", k);
  }

  std::string connect(size_t k) {
    GeneCell& cell = g_.cells[k];
    if (!is_dense(cell.layer) || cell.layer.disabled) return {};
    const int64_t in = whole_field(cell.layer, "in"), out = whole_field(cell.layer, "out");
    const auto past = make_layer(LayerKind::dense, {{"in", in}, {"out", out}, {"bias", false}});
    if (!past.ok()) return {};
    const auto both = make_layer(LayerKind::parallel, {{"combine", "add"}}, {cell.layer, *past});
    if (!both.ok()) return {};
    std::map<std::string, std::vector<float>> values;
    for (auto& [name, v] : cell.values) values["0/" + name] = std::move(v);
    values["1/weight"] = std::vector<float>(static_cast<size_t>(in * out), 0.0f);
    cell = {*both, cell.dtype, std::move(values)};
    return cat("connect past cell ", k);
  }

  std::string disconnect(size_t k) {
    GeneCell& cell = g_.cells[k];
    if (!is_added(cell.layer) || cell.layer.disabled || cell.layer.children.size() != 2) return {};
    std::map<std::string, std::vector<float>> values;
    for (auto& [name, v] : cell.values) {
      if (name.starts_with("0/")) values[name.substr(2)] = std::move(v);
    }
    LayerConfig kept = cell.layer.children[0];
    cell = {std::move(kept), cell.dtype, std::move(values)};
    return cat("disconnect cell ", k);
  }

  std::string retype(size_t k) {
    GeneCell& cell = g_.cells[k];
    if (cell.values.empty()) return {};
    const DType types[] = {DType::f32, DType::bf16, DType::i8, DType::i4};
    const DType before = cell.dtype.value_or(DType::f32), next = types[draws_.below(4)];
    if (next == before) return {};
    cell.dtype = next;
    return cat("type of cell ", k, ": ", dtype_name(before), " to ", dtype_name(next));
  }

  std::string perturb(size_t k) {
    GeneCell& cell = g_.cells[k];
    if (cell.values.empty()) return {};
    for (auto& [name, values] : cell.values) {
      double squares = 0;
      for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
      const double size =
          std::sqrt(squares / static_cast<double>(std::max<size_t>(values.size(), 1)));
      for (float& v : values) v += draws_.around(rates_.perturb * size);
    }
    return cat("perturb cell ", k);
  }

  GridGenome& g_;
  const GridRates& rates_;
  Draws& draws_;
};

bool accepted(const GridGenome& genome, const GridRates& rates) {
  const Result<Network> network = genome.finalized(1);
  if (!network.ok()) return false;
  return rates.most_parameters <= 0 || network->param_count() <= rates.most_parameters;
}

}  // namespace

const char* change_name(GridChange change) {
  return kChangeNames[static_cast<size_t>(change)];
}

bool keeps_function(GridChange change) {
  return change == GridChange::widen || change == GridChange::deepen ||
         change == GridChange::block || change == GridChange::connect;
}

ChangeReport change_genome(GridGenome& genome, const GridRates& rates, Draws& draws) {
  constexpr int kTries = 8;
  std::vector<GridChange> from = rates.changes;
  for (int i = 0; i < kGridChanges && rates.changes.empty(); ++i) {
    if (static_cast<GridChange>(i) != GridChange::retype)
      from.push_back(static_cast<GridChange>(i));
  }
  ChangeReport report;
  for (int i = 0; i < kTries; ++i) {
    const GridChange change = from[draws.below(from.size())];
    GridGenome next = genome;
    std::string what = GridChanger(next, rates, draws).make(change);
    if (what.empty() || !accepted(next, rates)) {
      ++report.rejected;
      continue;
    }
    genome = std::move(next);
    report.change = change;
    report.what = std::move(what);
    break;
  }
  return report;
}

}  // namespace loom::core
