#include "evolve/networks/darts_cells.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "layers/core/fields.hpp"

namespace loom::core {
namespace {

std::string text_field(const LayerConfig& c, std::string_view name) {
  const int i = field_index(c, name);
  return i < 0 ? std::string() : std::string(c.text(i));
}
int64_t number_field(const LayerConfig& c, std::string_view name) {
  const int i = field_index(c, name);
  if (i < 0) return 0;
  return c.def->fields[static_cast<size_t>(i)].type == FieldType::list
             ? (c.list(i).empty() ? 0 : c.list(i)[0])
             : c.integer(i);
}

bool is_mixed(const LayerConfig& c) {
  return c.def->kind == LayerKind::parallel && text_field(c, "combine") == "mixed";
}

// "conv 5x5 relu", "conv 3x3 + dense tanh", "identity".
std::string branch_name(const LayerConfig& c) {
  if (c.disabled) return "identity";
  const std::string activation = text_field(c, "activation");
  const std::string tail = activation.empty() || activation == "linear" ? "" : " " + activation;
  const int64_t kernel = number_field(c, "kernel");
  if (c.def->kind == LayerKind::dense) return cat("dense ", number_field(c, "out"), tail);
  if (c.def->kind == LayerKind::cnn2) {
    const bool apart = number_field(c, "groups") > 1;
    const int64_t dilation = number_field(c, "dilation");
    return cat(apart ? "depthwise " : "conv ", kernel, "x", kernel,
               dilation > 1 ? cat(" dilated ", dilation) : std::string(), tail);
  }
  if (c.def->kind == LayerKind::pool) return cat(text_field(c, "kind"), " pool ", kernel);
  if (c.def->kind != LayerKind::sequential) return std::string(c.def->name) + tail;
  std::string all;
  for (const LayerConfig& child : c.children) {
    if (child.def->kind == LayerKind::view) continue;
    all += (all.empty() ? "" : " + ") + branch_name(child);
  }
  return all;
}

// Candidates for one cell; add() skips those that do not fit its shapes.
class Branches {
 public:
  Branches(const GridGenome& seed, const Network& network, size_t cell)
      : own_(seed.cells[cell].layer),
        in_(network.cells()[cell].in),
        out_(network.cells()[cell].out),
        last_(cell + 1 == seed.cells.size()) {}

  std::vector<LayerConfig> all() {
    made_.push_back(own_);
    if (own_.disabled) return made_;
    if (own_.def->kind == LayerKind::dense) add_for_dense();
    if (own_.def->kind == LayerKind::cnn2) add_for_conv();
    return std::move(made_);
  }

 private:
  using Maybe = Result<LayerConfig>;

  // Adds a branch whose output has the shape of the cell's.
  void add(const Maybe& branch) {
    if (!branch.ok()) return;
    const Result<Shape> shape = infer_after(*branch, in_, in_);
    if (shape.ok() && shape->count() == out_.count() && (*shape)[0] == out_[0])
      made_.push_back(*branch);
  }
  static Maybe chain(std::vector<Maybe> parts) {
    std::vector<LayerConfig> children;
    for (Maybe& part : parts) {
      if (!part.ok()) return part.error();
      children.push_back(*std::move(part));
    }
    return make_layer(LayerKind::sequential, {}, std::move(children));
  }
  void add_nothing() {
    if (!(in_ == out_)) return;
    LayerConfig same = own_;
    same.disabled = true;
    add(same);
  }
  LayerConfig with_activation(const char* name) const {
    LayerConfig other = own_;
    other.set_text(field_index(other, "activation"), name);
    return other;
  }
  Maybe dense(int64_t in, int64_t out, const std::string& activation) const {
    return make_layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
  }

  void add_for_dense() {
    const std::string activation = text_field(own_, "activation");
    const int64_t in = number_field(own_, "in"), out = number_field(own_, "out");
    for (const char* other : {"relu", "tanh", "silu"}) {
      if (!last_ && activation != other) add(with_activation(other));
    }
    constexpr int64_t kMaxDeep = 256;
    if (in <= kMaxDeep) add(chain({dense(in, in, "relu"), dense(in, out, activation)}));
    add_for_picture(in, out, activation);
    if (!last_) add_nothing();
  }

  // Branches for an image C x H x W; [H, W] has one channel.
  void add_for_picture(int64_t in, int64_t out, const std::string& activation) {
    constexpr int64_t kMin = 8;
    const bool grey = in_.rank() == 3, colored = in_.rank() == 4;
    if (!grey && !colored) return;
    const int64_t c = grey ? 1 : in_[1], h = in_[in_.rank() - 2], w = in_.last();
    if (h < kMin || w < kMin || c * h * w != in) return;
    const int64_t budget = (in + 1) * out;
    const auto half = [](int64_t n) { return (n + 1) / 2; };
    const int64_t h2 = half(h), w2 = half(w), h4 = half(h2), w4 = half(w2);
    const Maybe view = make_layer(LayerKind::view, {{"shape", std::vector<int64_t>{-1, c, h, w}}});
    const auto conv = [](int64_t from, int64_t to, int64_t kernel) {
      return make_layer(LayerKind::cnn2, {{"channels", from},
                                          {"filters", to},
                                          {"kernel", kernel},
                                          {"stride", 2},
                                          {"padding", kernel / 2},
                                          {"activation", "relu"}});
    };
    constexpr int64_t kMaxFilters = 16;
    for (const int64_t kernel : {5, 3}) {
      const int64_t each = (c * kernel * kernel + 1) + (h2 / 2) * (w2 / 2) * out;
      const int64_t filters = std::min(kMaxFilters, (budget - out) / each);
      if (filters < 1) continue;
      const Maybe pool = make_layer(LayerKind::pool, {{"kernel", 2}});
      add(chain({view, conv(c, filters, kernel), pool,
                 dense(filters * (h2 / 2) * (w2 / 2), out, activation)}));
    }
    const auto two = [&](int64_t f) {
      return f * (c * 9 + 1) + 2 * f * (f * 9 + 1) + (2 * f * h4 * w4 + 1) * out;
    };
    int64_t f = kMaxFilters;
    while (f > 0 && two(f) > budget) --f;
    if (f > 0)
      add(chain({view, conv(c, f, 3), conv(f, 2 * f, 3), dense(2 * f * h4 * w4, out, activation)}));
  }

  void add_for_conv() {
    const int64_t kernel = number_field(own_, "kernel"), pad = number_field(own_, "padding");
    const int64_t dilation = number_field(own_, "dilation"), groups = number_field(own_, "groups");
    const int64_t stride = number_field(own_, "stride"), c = number_field(own_, "channels");
    const int64_t filters = number_field(own_, "filters");
    const std::string activation = text_field(own_, "activation");
    for (const char* name : {"kernel", "stride", "padding", "dilation"}) {
      if (own_.list(field_index(own_, name)).size() != 1) return;  // axes that differ
    }
    if (kernel % 2 == 0 || dilation != 1 || groups != 1) return;
    const auto conv = [&](int64_t to, int64_t k, int64_t step, int64_t apart, int64_t dilated,
                          const std::string& function) {
      const int64_t wider = (dilated * (k - 1) - (kernel - 1)) / 2;
      return make_layer(LayerKind::cnn2, {{"channels", c},
                                          {"filters", to},
                                          {"kernel", k},
                                          {"stride", step},
                                          {"padding", std::max<int64_t>(pad + wider, 0)},
                                          {"dilation", dilated},
                                          {"groups", apart},
                                          {"activation", function}});
    };
    for (const int64_t k : {1, 3, 5}) {
      if (k != kernel) add(conv(filters, k, stride, 1, 1, activation));
    }
    add(conv(filters, 3, stride, 1, 2, activation));
    const Maybe point = make_layer(
        LayerKind::cnn2,
        {{"channels", c}, {"filters", filters}, {"kernel", 1}, {"activation", activation}});
    if (c > 1) add(chain({conv(c, kernel, stride, c, 1, "linear"), point}));
    for (const char* kind : {"max", "average"}) {
      const Maybe pool =
          make_layer(LayerKind::pool,
                     {{"kind", kind}, {"kernel", kernel}, {"stride", stride}, {"padding", pad}});
      add(chain({pool, point}));
    }
    add_nothing();
  }

  const LayerConfig& own_;
  Shape in_, out_;
  bool last_;
  std::vector<LayerConfig> made_;
};

// Parameters in every cell of a finalized network.
std::vector<int64_t> parameters_of_cells(const Network& network, size_t cells) {
  std::vector<int64_t> out(cells, 0);
  for (const Param& p : network.params()) out[gene_position(p).cell] += p.spec.shape.count();
  return out;
}

// The number of parameters of each branch of a mixed cell.
std::vector<int64_t> parameters_of_branches(const Network& network, size_t cell, size_t count) {
  std::vector<int64_t> out(count, 0);
  for (const Param& p : network.params()) {
    if (gene_position(p).cell == cell && p.child >= 0)
      out[static_cast<size_t>(p.child)] += p.spec.shape.count();
  }
  return out;
}

// Keeps choices that no other beats in both parameters and score.
void keep_best(std::vector<BranchChoice>& all) {
  std::ranges::stable_sort(all, [](const BranchChoice& a, const BranchChoice& b) {
    return a.parameters != b.parameters ? a.parameters < b.parameters : a.score > b.score;
  });
  std::vector<BranchChoice> kept;
  for (BranchChoice& one : all) {
    if (kept.empty() || one.score > kept.back().score) kept.push_back(std::move(one));
  }
  all = std::move(kept);
}

}  // namespace

std::vector<MixedCell> mixed_cells(const GridGenome& genome) {
  std::vector<MixedCell> out;
  for (size_t i = 0; i < genome.cells.size(); ++i) {
    const LayerConfig& layer = genome.cells[i].layer;
    if (!is_mixed(layer) || layer.disabled) continue;
    MixedCell& cell = out.emplace_back();
    cell.cell = i;
    for (const LayerConfig& branch : layer.children) cell.branches.push_back(branch_name(branch));
  }
  return out;
}

Result<GridGenome> mixed_genome(const GridGenome& seed) {
  if (!mixed_cells(seed).empty()) return seed;
  LOOM_ASSIGN(const Network network, seed.finalized(2));
  GridGenome out = seed;
  for (size_t i = 0; i < seed.cells.size(); ++i) {
    std::vector<LayerConfig> branches = Branches(seed, network, i).all();
    if (branches.size() < 2) continue;
    LOOM_ASSIGN(out.cells[i].layer,
                make_layer(LayerKind::parallel, {{"combine", "mixed"}}, std::move(branches)));
    out.cells[i].values.clear();
    for (const auto& [name, values] : seed.cells[i].values)
      out.cells[i].values["0/" + name] = values;
  }
  if (!mixed_cells(out).empty()) return out;
  return invalid(
      "no cell of the network has an alternative: those of Dense and CNN2 do; or give cells that "
      "are Parallel with combine \"mixed\"");
}

Result<BranchChoice> choose_branches(const GridGenome& mixed,
                                     const std::vector<std::vector<double>>& weights,
                                     int64_t most_parameters) {
  LOOM_ASSIGN(const Network network, mixed.finalized(2));
  const std::vector<MixedCell> cells = mixed_cells(mixed);
  if (weights.size() != cells.size())
    return invalid(cat("weights of ", weights.size(), " cells for ", cells.size()));
  int64_t fixed = 0, undecided = 0;
  for (const int64_t n : parameters_of_cells(network, mixed.cells.size())) fixed += n;
  std::vector<BranchChoice> all(1);
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t count = cells[i].branches.size();
    if (weights[i].size() != count)
      return invalid(cat(weights[i].size(), " weights for ", count, " branches"));
    const std::vector<int64_t> sizes = parameters_of_branches(network, cells[i].cell, count);
    undecided += static_cast<int64_t>(count);  // alpha
    for (const int64_t size : sizes) undecided += size;
    std::vector<BranchChoice> next;
    for (const BranchChoice& begun : all) {
      for (size_t k = 0; k < count; ++k) {
        BranchChoice& one = next.emplace_back(begun);
        one.branches.push_back(k);
        // A disabled child has parameters inside a mixture, but none on its own.
        const bool nothing = mixed.cells[cells[i].cell].layer.children[k].disabled;
        one.parameters += nothing ? 0 : sizes[k];
        one.score += std::log(std::max(weights[i][k], 1e-300));
      }
    }
    keep_best(next);
    all = std::move(next);
  }
  fixed -= undecided;
  const BranchChoice* best = nullptr;
  for (BranchChoice& one : all) {
    one.parameters += fixed;
    const bool fits = most_parameters <= 0 || one.parameters <= most_parameters;
    if (fits && (best == nullptr || one.score > best->score)) best = &one;
  }
  if (best != nullptr) return *best;
  return invalid(cat("the smallest choice of branches has ", all.front().parameters,
                     " parameters; ", most_parameters, " are allowed"));
}

GridGenome decided(const GridGenome& mixed, const BranchChoice& choice) {
  GridGenome out = mixed;
  const std::vector<MixedCell> cells = mixed_cells(mixed);
  for (size_t i = 0; i < cells.size() && i < choice.branches.size(); ++i) {
    GeneCell& cell = out.cells[cells[i].cell];
    const std::string prefix = cat(choice.branches[i], "/");
    std::map<std::string, std::vector<float>> values;
    for (const auto& [name, list] : cell.values) {
      if (name.starts_with(prefix)) values[name.substr(prefix.size())] = list;
    }
    const LayerConfig chosen = cell.layer.children[choice.branches[i]];
    cell.layer = chosen;
    cell.values = std::move(values);
  }
  return out;
}

}  // namespace loom::core
