// The grid of the items that importing found: functions go into the layers before them, sums and
// joins of branches become containers, what is left is a row of cells with links. See
// lower.hpp.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "onnx/import/lower/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxDiagonal = 1024;  // values of a row that a diagonal matrix is made for

class Builder {
 public:
  Builder(std::vector<Item> items, int last) : items_(std::move(items)), last_(last) {}
  Result<ImportedNetwork> run(const Shape& sample);

 private:
  Item& at(int i) { return items_[static_cast<size_t>(i)]; }
  int resolve(int i) const;
  void count_uses();
  int uses(int i) const { return uses_[static_cast<size_t>(i)]; }
  Status choose_layer(int i);
  Status choose_activation(int i);
  Status choose_attention(Item& item);
  Status join_add(int i);
  Status join_concat(int i);
  // Items from `end` back to the one where others branch off (`stop`), first one first.
  std::vector<int> chain(int end, int& stop);
  void replace(int i, LayerConfig container, const std::vector<std::vector<int>>& branches,
               bool nested, int source);
  Result<std::vector<int>> order();
  Status build_layer_grid(ImportedNetwork& out);

  std::vector<Item> items_;
  int last_;
  std::vector<int> uses_;
  std::vector<int> same_;   // items that are others now
  std::vector<int> cells_;  // items in the order of the row
};

int Builder::resolve(int i) const {
  while (same_[static_cast<size_t>(i)] != i) i = same_[static_cast<size_t>(i)];
  return i;
}

// Counts the uses of items that the output needs.
void Builder::count_uses() {
  uses_.assign(items_.size(), 0);
  uses_[static_cast<size_t>(resolve(last_))] = 1;
  for (size_t i = items_.size(); i-- > 0;) {
    if (uses_[i] == 0 || resolve(static_cast<int>(i)) != static_cast<int>(i)) continue;
    for (int& source : items_[i].sources) {
      source = resolve(source);
      ++uses_[static_cast<size_t>(source)];
    }
  }
}

Status Builder::choose_activation(int i) {
  Item& item = at(i);
  const int from = item.sources[0];
  Item& before = at(from);
  if (is_product(before) && uses(from) == 1) {
    for (size_t f = 0; f < before.layer.def->fields.size(); ++f) {
      const auto field = static_cast<int>(f);
      if (before.layer.def->fields[f].name != "activation" || before.layer.text(field) != "linear")
        continue;
      before.layer.set_text(field, std::string(activation_name(item.activation)));
      same_[static_cast<size_t>(i)] = from;
      uses_[static_cast<size_t>(from)] = uses(i);
      return {};
    }
  }
  LOOM_ASSIGN(
      item.layer,
      make_layer(LayerKind::unary, {{"function", std::string(activation_name(item.activation))}}));
  item.role = Item::Role::layer;
  return {};
}

// Attention whose heads nothing projects.
Status Builder::choose_attention(Item& item) {
  const int64_t width = item.layer.integer(fields::multi_head_attention::kWidth),
                wide = item.out.last();
  if (width != wide)
    return unsupported(cat("node '", printable(item.node), "': attention of ", wide,
                           " values over ", width, " that no product brings back to ", width));
  std::vector<float> eye(static_cast<size_t>(width * width));
  for (int64_t i = 0; i < width; ++i) eye[static_cast<size_t>(i * width + i)] = 1.0f;
  for (ItemParam& p : item.params) {
    if (p.path == "o") p = {"o", p.shape, shared(eye), true};
  }
  item.role = Item::Role::layer;
  return {};
}

Status Builder::choose_layer(int i) {
  Item& item = at(i);
  for (int& source : item.sources) source = resolve(source);
  if (item.role == Item::Role::activation) return choose_activation(i);
  if (item.role == Item::Role::attention) return choose_attention(item);
  if (item.role == Item::Role::gated)
    return unsupported(cat("node '", printable(item.node),
                           "': a gate act(W1 x) * (W2 x) that no product brings back to the width "
                           "of its input"));
  if (item.role == Item::Role::add) return join_add(i);
  if (item.role == Item::Role::concat) return join_concat(i);
  return {};
}

std::vector<int> Builder::chain(int end, int& stop) {
  std::vector<int> out;
  int i = end;
  while (uses(i) == 1 && at(i).role == Item::Role::layer && at(i).sources.size() == 1) {
    out.push_back(i);
    i = at(i).sources[0];
  }
  stop = i;
  std::reverse(out.begin(), out.end());
  return out;
}

// Item i as a container of branches, each a child (nested: a Sequential) of it.
void Builder::replace(int i, LayerConfig container, const std::vector<std::vector<int>>& branches,
                      bool nested, int source) {
  Item made;
  made.out = at(i).out;
  made.node = at(i).node;
  // All branches read `source`; from now on the container alone does.
  uses_[static_cast<size_t>(source)] -= static_cast<int>(at(i).sources.size()) - 1;
  made.sources = {source};
  made.layer = std::move(container);
  for (size_t b = 0; b < branches.size(); ++b) {
    const bool single = nested && branches[b].size() == 1;
    LayerConfig inside;
    if (nested && !single) {
      Result<LayerConfig> row = make_layer(LayerKind::sequential, {});
      if (row.ok()) inside = std::move(*row);
    }
    LayerConfig& into = nested && !single ? inside : made.layer;
    for (size_t c = 0; c < branches[b].size(); ++c) {
      Item& child = at(branches[b][c]);
      uses_[static_cast<size_t>(branches[b][c])] = 0;
      std::string prefix = cat(nested ? b : c, "/");
      if (nested && !single) prefix += cat(c, "/");
      for (ItemParam& p : child.params)
        made.params.push_back({prefix + p.path, p.shape, std::move(p.values), p.made_up});
      into.children.push_back(std::move(child.layer));
    }
    if (nested && !single) made.layer.children.push_back(std::move(inside));
  }
  at(i) = std::move(made);
}

Status Builder::join_add(int i) {
  Item& item = at(i);
  const int a = item.sources[0], b = item.sources[1];
  int stop_a = 0, stop_b = 0;
  std::vector<int> one = chain(a, stop_a), two = chain(b, stop_b);
  const bool joined = stop_a == stop_b && a != b && !(one.empty() && two.empty());
  item.role = Item::Role::layer;
  if (!joined) {
    LOOM_ASSIGN(item.layer, make_layer(LayerKind::residual, {}));
    return {};
  }
  if (one.empty() || two.empty()) {
    LOOM_ASSIGN(LayerConfig residual, make_layer(LayerKind::residual, {}));
    replace(i, std::move(residual), {one.empty() ? two : one}, false, stop_a);
  } else {
    LOOM_ASSIGN(LayerConfig parallel, make_layer(LayerKind::parallel, {{"combine", "add"}}));
    replace(i, std::move(parallel), {one, two}, true, stop_a);
  }
  return {};
}

Status Builder::join_concat(int i) {
  std::vector<std::vector<int>> branches;
  int stop = -1;
  for (const int source : at(i).sources) {
    int here = 0;
    branches.push_back(chain(source, here));
    if (stop >= 0 && here != stop)
      return unsupported(cat("node '", printable(at(i).node),
                             "' (Concat): joins values that do not branch off one value"));
    stop = here;
  }
  LOOM_ASSIGN(LayerConfig parallel, make_layer(LayerKind::parallel, {{"combine", "concat"}}));
  replace(i, std::move(parallel), branches, true, stop);
  return {};
}

// Cells, with identities where a link must start from somewhere.
Result<std::vector<int>> Builder::order() {
  const auto identity = [&](int source) -> Result<int> {
    Item item;
    LOOM_ASSIGN(item.layer, make_layer(LayerKind::sequential, {}));
    item.sources = {source};
    item.out = at(source).out;
    items_.push_back(std::move(item));
    return static_cast<int>(items_.size()) - 1;
  };
  std::vector<int> row;
  const int count = static_cast<int>(items_.size());
  bool linked = uses(0) > 1;
  for (int i = 1; i < count && !linked; ++i) {  // the second item may read the input late
    if (uses(i) == 0 || resolve(i) != i) continue;
    linked = std::ranges::find(at(i).sources, 0) != at(i).sources.end() && !row.empty();
    row.push_back(i);
  }
  row.clear();
  int input = 0;
  if (linked || resolve(last_) == 0) {
    LOOM_ASSIGN(input, identity(0));
    row.push_back(input);
  }
  for (int i = 1; i < count; ++i) {
    if (uses(i) == 0 || resolve(i) != i) continue;
    for (int& source : at(i).sources) {
      if (source != 0 || input == 0) continue;
      if (takes_ids(at(i).layer))
        return unsupported(cat("node '", printable(at(i).node),
                               "': the ids of the input are read "
                               "by more than one layer"));
      source = input;
    }
    // A sum takes its first value from the cell before it.
    if (at(i).sources.size() == 2) {
      std::vector<int>& s = at(i).sources;
      if (!row.empty() && row.back() == s[1]) std::swap(s[0], s[1]);
      if (row.empty() || row.back() != s[0]) {
        LOOM_ASSIGN(const int copy, identity(s[0]));
        row.push_back(copy);
        at(i).sources[0] = copy;
      }
    }
    row.push_back(i);
  }
  return row;
}

Status Builder::build_layer_grid(ImportedNetwork& out) {
  std::vector<int64_t> cell_of(items_.size(), -1);
  // Training would separate weights that several layers share because a layer was copied.
  std::set<const std::vector<float>*> placed;
  for (size_t x = 0; x < cells_.size(); ++x) {
    Item& item = at(cells_[x]);
    const Coord here{0, 0, static_cast<int64_t>(x), 0};
    Cell cell;
    const bool sum = item.sources.size() == 2;
    const int from = item.sources[sum ? 1 : 0];
    const bool next = !sum && (x == 0 ? from == 0 : cells_[x - 1] == from);
    if (!next) cell.link = Link{{0, 0, cell_of[static_cast<size_t>(from)], 0}, false};
    cell.layer = std::move(item.layer);
    LOOM_TRY(out.network.grid.put(here, std::move(cell)));
    for (const ItemParam& p : item.params) {
      out.params.push_back({cat(here.str(), "/", p.path), p.shape, *p.values});
      if (!placed.insert(p.values.get()).second || p.made_up) out.made_up += p.shape.count();
    }
    cell_of[static_cast<size_t>(cells_[x])] = static_cast<int64_t>(x);
  }
  return {};
}

Result<ImportedNetwork> Builder::run(const Shape& sample) {
  for (size_t i = 0; i < items_.size(); ++i) same_.push_back(static_cast<int>(i));
  count_uses();
  const int count = static_cast<int>(items_.size());
  for (int i = 1; i < count; ++i) {
    if (uses(i) == 0) continue;
    LOOM_TRY(choose_layer(i));
    for (int k = i + 1; same_[static_cast<size_t>(i)] != i && k < count; ++k) {
      for (int& source : at(k).sources)
        source = source == i ? same_[static_cast<size_t>(i)] : source;
    }
  }
  count_uses();
  LOOM_ASSIGN(cells_, order());
  ImportedNetwork out{{GridSpec(1, 1, static_cast<int64_t>(cells_.size()), 1), sample}, {}, {}, {}};
  LOOM_TRY(build_layer_grid(out));
  LOOM_TRY(Network::finalize(out.network.grid, sample.after(1)));
  return out;
}

}  // namespace

Result<Item> affine_item(const Shape& in, const Item& affine) {
  Item item;
  item.sources = {0};
  item.out = in;
  if (affine.axis == 1) {
    if (in.rank() < 3 || in.rank() > 5)
      return unsupported("a scale per channel of what has no channels");
    constexpr LayerKind kKinds[] = {LayerKind::cnn1, LayerKind::cnn2, LayerKind::cnn3};
    const int64_t c = in[1];
    LOOM_ASSIGN(item.layer, make_layer(kKinds[in.rank() - 3], {{"channels", c},
                                                               {"filters", c},
                                                               {"groups", c},
                                                               {"kernel", std::vector<int64_t>{1}},
                                                               {"bias", true}}));
    item.params.push_back({"weight", Shape{c, 1}, shared(affine.scale), true});
    item.params.push_back({"bias", Shape{c}, shared(affine.shift), true});
    return item;
  }
  const int64_t n = in.last();
  if (n > kMaxDiagonal)
    return unsupported(
        cat("a scale of single values over rows of ", n,
            " would need a matrix of that width; put it after a layer with weights"));
  LOOM_ASSIGN(item.layer, make_layer(LayerKind::dense, {{"in", n}, {"out", n}, {"bias", true}}));
  std::vector<float> w(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    w[static_cast<size_t>(i * n + i)] = affine.scale[static_cast<size_t>(i)];
  item.params.push_back({"weight", Shape{n, n}, shared(std::move(w)), true});
  item.params.push_back({"bias", Shape{n}, shared(affine.shift), true});
  return item;
}

Result<ImportedNetwork> grid_of(std::vector<Item> items, int last, const Shape& sample) {
  return Builder(std::move(items), last).run(sample);
}

}  // namespace loom::core
