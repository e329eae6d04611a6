// Finds the execution order of modules: see parts.hpp. It follows names, or the roles in names
// ("embed_tokens", "norm", "lm_head"). If shapes contradict names, it is the only order in which
// widths match.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "bridge/sample_size.hpp"
#include "formats/universal/parts.hpp"
#include "layers/core/fields.hpp"

namespace loom::core {
namespace {

constexpr int64_t kAssumedSteps = 32;
constexpr size_t kMaxChain = 10;  // maximum modules for a search of all orders

bool is(const ModuleLayer& layer, LayerKind kind) {
  return layer.config.def->kind == kind;
}
bool is_norm(const ModuleLayer& layer) {
  return is(layer, LayerKind::rms_norm) || is(layer, LayerKind::layer_norm);
}
bool is_recurrent(const ModuleLayer& layer) {
  return is(layer, LayerKind::rnn) || is(layer, LayerKind::gru) || is(layer, LayerKind::lstm);
}

void set_text(LayerConfig& config, std::string_view field, const std::string& value) {
  const int index = field_index(config, field);
  if (index >= 0) config.set_text(index, value);
}
void set_list(LayerConfig& config, std::string_view field, std::vector<int64_t> value) {
  const int index = field_index(config, field);
  if (index >= 0) config.set_list(index, std::move(value));
}

// "model.layers.3" of "model.layers.3.mlp"; empty if the name has no such part.
std::string block_of(std::string_view name) {
  size_t start = 0;
  bool after = false;
  while (start <= name.size()) {
    const size_t dot = std::min(name.find('.', start), name.size());
    const std::string_view part = name.substr(start, dot - start);
    if (after && as_number(part) >= 0) return std::string(name.substr(0, dot));
    after = one_of(part, {"layers", "h", "blocks", "block", "layer"});
    start = dot + 1;
  }
  return {};
}

// "fc#" of "fc12".
std::string stem_of(std::string_view name) {
  std::string stem;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) stem += c;
    if (digit && (stem.empty() || stem.back() != '#')) stem += '#';
  }
  return stem;
}

// Whether two names first differ in a number, as "net.2.weight" and "net.10.bias", or "fc1" and
// "fc2".
bool numbered_alike(std::string_view a, std::string_view b) {
  while (true) {
    const std::string_view x = a.substr(0, a.find('.')), y = b.substr(0, b.find('.'));
    if (x != y) return stem_of(x) == stem_of(y);
    if (x.size() == a.size() || y.size() == b.size()) return false;
    a.remove_prefix(x.size() + 1);
    b.remove_prefix(y.size() + 1);
  }
}

// The contents of one cell: a layer, or a residual of two.
struct Item {
  std::vector<ModuleLayer> layers;  // one; or a norm and the layer after it
  bool residual = false, tied = false;
  const ModuleLayer& front() const { return layers.front(); }
  const ModuleLayer& back() const { return layers.back(); }
};

class Arranger {
 public:
  Arranger(std::vector<ModuleLayer> layers, ModuleReader& reader, const TensorFile& file,
           const std::string& where, const InferOptions& options)
      : layers_(std::move(layers)),
        reader_(reader),
        file_(file),
        where_(where),
        options_(options) {}
  Result<InferredNetwork> arrange();

 private:
  Error open_questions() const;
  Error refuse(std::string message) const { return unsupported(std::move(message), where_); }
  void assume(std::string text) { reader_.assumptions.push_back(std::move(text)); }
  void guess(std::string what, std::string option) {
    reader_.guesses.push_back({std::move(what), std::move(option)});
  }
  Result<bool> decoder();
  Status add_block(const std::string& name, std::vector<ModuleLayer> members);
  Status row();
  void place_tables();
  bool follows(const ModuleLayer& before, const ModuleLayer& after) const;
  bool chained(const std::vector<ModuleLayer>& order) const;
  using Orders = std::vector<std::vector<size_t>>;
  void search(std::vector<size_t>& order, std::vector<bool>& used, bool by_number,
              Orders& found) const;
  Status order_by_shapes();
  void check_order();
  void activate();
  bool numbered(size_t at) const;
  bool has_activation(size_t at) const;
  void set_activation(size_t at, std::vector<ModuleLayer>& out);
  void check_rest();
  Shape input_shape() const;
  Shape image() const;
  Result<NetworkSpec> build(const Shape& input) const;
  void set_window(ModuleLayer& m, size_t at, int64_t stride, bool same) const;
  Result<NetworkSpec> fit();
  void arrange_into(InferredNetwork& into) const;

  std::vector<ModuleLayer> layers_;
  ModuleReader& reader_;
  const TensorFile& file_;
  const std::string& where_;
  const InferOptions& options_;
  std::vector<Item> items_;
};

// ---- decoders
// ------------------------------------------------------------------------------------

Status Arranger::add_block(const std::string& name, std::vector<ModuleLayer> members) {
  ModuleLayer* slots[4] = {};
  for (ModuleLayer& m : members) {
    const std::string_view leaf = last_part(m.name);
    int slot = -1;
    if (is(m, LayerKind::multi_head_attention)) slot = 1;
    if (is(m, LayerKind::swiglu)) slot = 3;
    if (is_norm(m) &&
        one_of(leaf, {"input_layernorm", "ln_1", "ln1", "norm1", "attention_norm", "attn_norm"}))
      slot = 0;
    if (is_norm(m) &&
        one_of(leaf, {"post_attention_layernorm", "ln_2", "ln2", "norm2", "ffn_norm", "mlp_norm"}))
      slot = 2;
    if (slot < 0) return refuse(cat("what '", m.name, "' does in its block is not known"));
    if (slots[slot] != nullptr)
      return refuse(cat("'", slots[slot]->name, "' and '", m.name, "' stand for the same layer"));
    slots[slot] = &m;
  }
  for (int i = 0; i < 4; i += 2) {
    if (slots[i] == nullptr && slots[i + 1] == nullptr) continue;
    if (slots[i] == nullptr || slots[i + 1] == nullptr)
      return refuse(cat("block '", name, "' has ", slots[i] == nullptr ? "no norm before " : "",
                        slots[i] == nullptr ? slots[i + 1]->name : slots[i]->name,
                        slots[i] == nullptr ? "" : " with nothing after it"));
    items_.push_back({{std::move(*slots[i]), std::move(*slots[i + 1])}, true});
  }
  return {};
}

// True if the names are those of a decoder; its items are then in order.
Result<bool> Arranger::decoder() {
  std::set<std::string, decltype(&natural_less)> blocks(&natural_less);
  for (const ModuleLayer& m : layers_) {
    const bool inner = is(m, LayerKind::multi_head_attention) || is(m, LayerKind::swiglu);
    const std::string block = block_of(m.name);
    if (inner && !block.empty()) blocks.insert(block);
  }
  if (blocks.empty()) return false;
  std::map<std::string, std::vector<ModuleLayer>> members;
  ModuleLayer *table = nullptr, *norm = nullptr, *head = nullptr;
  for (ModuleLayer& m : layers_) {
    const std::string block = block_of(m.name);
    if (blocks.count(block) > 0) {
      members[block].push_back(std::move(m));
      continue;
    }
    const std::string_view leaf = last_part(m.name);
    ModuleLayer** role = nullptr;
    if (is(m, LayerKind::embedding)) role = &table;
    if (is_norm(m) && one_of(leaf, {"norm", "ln_f", "final_layernorm", "final_norm"})) role = &norm;
    if (is(m, LayerKind::dense) &&
        one_of(leaf, {"lm_head", "head", "output", "classifier", "score"}))
      role = &head;
    if (role == nullptr) return refuse(cat("the position of '", m.name, "' is not known"));
    if (*role != nullptr)
      return refuse(cat("'", (*role)->name, "' and '", m.name, "' stand for the same layer"));
    *role = &m;
  }
  if (table != nullptr) items_.push_back({{std::move(*table)}});
  for (const std::string& block : blocks) LOOM_TRY(add_block(block, std::move(members[block])));
  if (norm != nullptr) items_.push_back({{std::move(*norm)}});
  if (head != nullptr) items_.push_back({{std::move(*head)}});
  if (head == nullptr && table != nullptr) {
    const LayerConfig& t = items_[0].front().config;
    ModuleLayer tied;
    LOOM_ASSIGN(tied.config,
                make_layer(LayerKind::dense,
                           {{"in", t.integer(1)}, {"out", t.integer(0)}, {"bias", false}}));
    items_.push_back({{std::move(tied)}, false, true});
    assume("no output matrix, so the embedding is it");
  }
  assume(
      "attention sees earlier positions alone and rotates with base 10000; norms add 1e-6 "
      "(LayerNorm 1e-5); no configuration says so");
  guess("the mask, the rotation and the epsilon of norms", "");
  return true;
}

// ---- rows
// ----------------------------------------------------------------------------------------

// A leading matrix without a bias is an embedding table if only its columns match the next layer.
void Arranger::place_tables() {
  if (layers_.size() < 2 || !layers_[0].maybe_table) return;
  ModuleLayer& first = layers_[0];
  const int64_t next = layers_[1].in;
  if (layers_[1].axes > 0 || next != first.in || next == first.out) return;
  Result<LayerConfig> table =
      make_layer(LayerKind::embedding, {{"vocab", first.out}, {"width", first.in}});
  if (!table.ok()) return;
  first.config = std::move(*table);
  first.out = first.in;
  first.in = 0;
  first.why = "a matrix of which only the columns fit what follows: a table";
  first.confidence = Confidence::medium;
}

bool Arranger::follows(const ModuleLayer& before, const ModuleLayer& after) const {
  if (is(after, LayerKind::embedding)) return false;
  if (before.axes > 0 && after.axes == 0 && is(after, LayerKind::dense))
    return after.in % before.out == 0;  // flattened
  return before.out == after.in && (after.axes == 0 || before.axes == after.axes);
}

bool Arranger::chained(const std::vector<ModuleLayer>& order) const {
  for (size_t i = 1; i < order.size(); ++i) {
    if (!follows(order[i - 1], order[i])) return false;
  }
  return true;
}

// Finds at most two orders in which all widths match. `order` never exceeds kMaxChain. by_number:
// modules whose names first differ in a number keep its order.
void Arranger::search(std::vector<size_t>& order, std::vector<bool>& used, bool by_number,
                      Orders& found) const {
  if (found.size() > 1) return;
  if (order.size() == layers_.size()) {
    found.push_back(order);
    return;
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (used[i] || (!order.empty() && !follows(layers_[order.back()], layers_[i]))) continue;
    bool later = false;  // than one that is not placed yet
    for (size_t j = 0; j < i && by_number; ++j)
      later = later || (!used[j] && numbered_alike(layers_[j].name, layers_[i].name));
    if (later) continue;
    used[i] = true;
    order.push_back(i);
    search(order, used, by_number, found);
    order.pop_back();
    used[i] = false;
  }
}

Status Arranger::order_by_shapes() {
  std::vector<size_t> order;
  std::vector<bool> used(layers_.size());
  Orders found;
  if (layers_.size() <= kMaxChain) search(order, used, false, found);
  if (found.size() != 1) {
    for (size_t i = 1; i < layers_.size(); ++i) {
      if (follows(layers_[i - 1], layers_[i])) continue;
      return refuse(cat("'", layers_[i].name, "' takes ", layers_[i].in, " values, but '",
                        layers_[i - 1].name, "' before it gives ", layers_[i - 1].out, ", and ",
                        found.empty() ? "no" : "more than one",
                        " other order fits; describe the network in JSON"));
    }
  }
  std::vector<ModuleLayer> sorted;
  for (const size_t i : found[0]) sorted.push_back(std::move(layers_[i]));
  layers_ = std::move(sorted);
  std::vector<std::string> names;
  for (ModuleLayer& m : layers_) {
    names.push_back(m.name);
    m.confidence = std::max(m.confidence, Confidence::medium);
  }
  assume(cat("the order is the only one in which shapes follow: ", join(names, ", ")));
  return {};
}

// Names define an order only if they have numbers; others may run in any order that fits.
void Arranger::check_order() {
  if (layers_.size() > kMaxChain) return;
  std::vector<size_t> order;
  std::vector<bool> used(layers_.size());
  Orders found;
  search(order, used, true, found);
  if (found.size() > 1) {
    guess("the order of layers, which is that of their names", "");
    assume("layers run in the order of their names, though shapes allow another");
  }
}

// Whether the names of layers `at` and at + 1 are indices of one torch.nn.Sequential.
bool Arranger::numbered(size_t at) const {
  const std::string &here = layers_[at].name, &next = layers_[at + 1].name;
  return as_number(last_part(here)) >= 0 && as_number(last_part(next)) >= 0 &&
         parent_name(here) == parent_name(next);
}

// Whether an activation may follow layer `at`, which is not the last.
bool Arranger::has_activation(size_t at) const {
  const auto active = [&](size_t i) {
    return is(layers_[i], LayerKind::dense) || layers_[i].axes > 0;
  };
  const bool norm = is_norm(layers_[at]), follows_one = at > 0 && active(at - 1);
  if (numbered(at)) {
    const bool gap =
        as_number(last_part(layers_[at + 1].name)) != as_number(last_part(layers_[at].name)) + 1;
    return gap && (active(at) || norm);
  }
  return (active(at) && !is_norm(layers_[at + 1])) || (norm && follows_one);
}

// Layer `at` is the last of `out`.
void Arranger::set_activation(size_t at, std::vector<ModuleLayer>& out) {
  const std::string function = options_.activation.empty() ? "relu" : options_.activation;
  const std::string name = out.back().name;
  const char* why =
      numbered(at) ? ": a number is left out in the names" : ": no name says otherwise";
  assume(cat("'", name, "' is followed by ", function, why));
  if (options_.activation.empty())
    guess(cat("the activation after '", name, "'"),
          "--activation NAME, as relu, tanh, or linear for none");
  if (!is_norm(out.back())) return set_text(out.back().config, "activation", function);
  Result<LayerConfig> unary = make_layer(LayerKind::unary, {{"function", function}});
  if (!unary.ok() || function == "linear") return;
  ModuleLayer layer;
  layer.name = name;
  layer.config = std::move(*unary);
  layer.in = layer.out = out.back().out;
  out.push_back(std::move(layer));
}

// Adds activations between layers, which have no weights.
void Arranger::activate() {
  std::vector<ModuleLayer> out;
  for (size_t i = 0; i < layers_.size(); ++i) {
    out.push_back(layers_[i]);
    if (i + 1 == layers_.size()) break;
    if (has_activation(i)) {
      set_activation(i, out);
    } else if (numbered(i) && as_number(last_part(layers_[i + 1].name)) !=
                                  as_number(last_part(layers_[i].name)) + 1) {
      guess(cat("what is between '", layers_[i].name, "' and '", layers_[i + 1].name, "'"), "");
      assume(cat("the layer between '", layers_[i].name, "' and '", layers_[i + 1].name,
                 "' has no weights and is left out"));
    }
  }
  layers_ = std::move(out);
}

// Guesses about single layers.
void Arranger::check_rest() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ModuleLayer& m = layers_[i];
    if (is_recurrent(m)) assume(cat("'", m.name, "' passes every state on, not the last alone"));
    if (is_recurrent(m) && i + 1 < layers_.size() && !is_recurrent(layers_[i + 1]))
      guess(cat("whether '", m.name, "' passes every state on, or the last"), "");
    if (is(m, LayerKind::rms_norm)) {
      assume(cat("'", m.name, "' is an RMSNorm that adds 1e-6"));
      guess(cat("the kind of norm and the epsilon of '", m.name, "'"), "");
    }
    if (is(m, LayerKind::multi_head_attention) && m.why.find("in_proj") == std::string::npos)
      guess(cat("the mask and the rotation of '", m.name, "'"), "");
  }
}

Status Arranger::row() {
  place_tables();
  // Heads usually come last whatever their names, so shapes are checked before names.
  if (!chained(layers_)) LOOM_TRY(order_by_shapes());
  check_order();
  place_tables();
  activate();
  check_rest();
  for (const ModuleLayer& m : layers_) {
    if (is(m, LayerKind::multi_head_attention) && m.why.find("in_proj") == std::string::npos)
      assume(cat("'", m.name, "' sees earlier positions alone and rotates with base 10000"));
  }
  for (ModuleLayer& m : layers_) items_.push_back({{std::move(m)}});
  return {};
}

// ---- the whole
// -----------------------------------------------------------------------------------

// The image shape for convolutions: computed backwards from the dense layer after them.
Shape Arranger::image() const {
  size_t convs = 0;
  while (convs < items_.size() && items_[convs].front().axes > 0) ++convs;
  if (convs == items_.size() || !is(items_[convs].front(), LayerKind::dense)) return {};
  const int64_t points = items_[convs].front().in / items_[convs - 1].front().out;
  const int axes = items_[0].front().axes;
  int64_t side = 1;
  const auto power = [&](int64_t base) {
    return axes == 1 ? base : axes == 2 ? base * base : base * base * base;
  };
  while (power(side) < points) ++side;
  if (power(side) != points) return {};
  Shape shape{items_[0].front().in};
  std::vector<int64_t> extents(static_cast<size_t>(axes), side);
  for (size_t i = convs; i-- > 0;) {
    if (items_[i].front().taps.size() != extents.size()) return {};
    for (size_t a = 0; a < extents.size(); ++a) extents[a] += items_[i].front().taps[a] - 1;
  }
  if (axes == 1) return Shape{shape[0], extents[0]};
  if (axes == 2) return Shape{shape[0], extents[0], extents[1]};
  return Shape{shape[0], extents[0], extents[1], extents[2]};
}

Shape Arranger::input_shape() const {
  if (options_.input.rank() > 0) return options_.input;
  const ModuleLayer& first = items_[0].front();
  if (first.axes > 0) return image();
  if (is(first, LayerKind::embedding)) return Shape{kAssumedSteps};
  for (const Item& item : items_) {
    const ModuleLayer& m = item.back();
    if (is_recurrent(m) || is(m, LayerKind::multi_head_attention))
      return Shape{kAssumedSteps, first.in};
  }
  return Shape{first.in};
}

Result<NetworkSpec> Arranger::build(const Shape& input) const {
  GridSpec grid(1, 1, static_cast<int64_t>(items_.size()), 1);
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    Cell cell;
    cell.layer = item.front().config;
    if (item.residual) {
      LOOM_ASSIGN(cell.layer, make_layer(LayerKind::residual, {},
                                         {item.layers[0].config, item.layers[1].config}));
    }
    if (item.tied) cell.shared_with = Coord{};
    for (const ModuleParam& p : item.back().params) {
      const std::string& stored = file_.entries()[p.pieces[0].tensor].dtype;
      const Result<DType> dtype = parse_dtype(stored);
      if (dtype.ok() && stored != "F32" && !cell.dtype.has_value()) cell.dtype = *dtype;
    }
    LOOM_TRY(grid.put({0, 0, static_cast<int64_t>(i), 0}, std::move(cell)));
  }
  const Result<Network> whole = Network::finalize(grid, input.after(1));
  if (!whole.ok()) return refuse(whole.error().message);
  return NetworkSpec{std::move(grid), input};
}

// Sets the stride and the padding of convolution `at`; an unset value means a guess.
void Arranger::set_window(ModuleLayer& m, size_t at, int64_t stride, bool same) const {
  const auto asked = [at](const std::vector<int64_t>& values) {
    return values[values.size() == 1 ? 0 : at];
  };
  std::vector<int64_t> pad;
  for (const int64_t k : m.taps) {
    pad.push_back(!options_.padding.empty() ? asked(options_.padding) : same ? k / 2 : 0);
  }
  set_list(m.config, "stride", {options_.stride.empty() ? stride : asked(options_.stride)});
  set_list(m.config, "padding", pad);
}

// Weights do not determine strides and padding: uses the given ones, or the first usual ones that
// fit.
Result<NetworkSpec> Arranger::fit() {
  const Shape input = input_shape();
  if (input.rank() == 0)
    return refuse(
        "weights do not tell how large the input is; give the shape of one sample "
        "(--input-shape C,H,W)");
  if (!sample_fits(input))
    return refuse(cat("one sample of the input has more than ", kMaxSampleValues, " values"));
  std::vector<ModuleLayer*> convs;
  for (Item& item : items_) {
    if (item.front().axes > 0) convs.push_back(&item.layers[0]);
  }
  Result<NetworkSpec> made = build(input);
  if (convs.empty()) return made;
  for (const auto* asked : {&options_.stride, &options_.padding}) {
    if (asked->size() > 1 && asked->size() != convs.size())
      return refuse(cat("--stride and --padding take 1 or ", convs.size(), " values"));
  }
  const bool settled = !options_.stride.empty() && !options_.padding.empty();
  if (!settled) guess("strides and padding of convolutions", "--stride N --padding N");
  if (options_.input.rank() == 0) guess("the size of the input", "--input-shape C,H,W");
  for (const int64_t stride : {1, 2}) {
    for (const bool same : {false, true}) {
      for (size_t i = 0; i < convs.size(); ++i) set_window(*convs[i], i, stride, same);
      Result<NetworkSpec> tried = build(input);
      if (settled && !tried.ok()) return tried;
      if (!tried.ok()) continue;
      assume(settled ? cat("no pooling, on samples of ", input.str(), ": weights do not tell")
                     : cat("convolutions of stride ", stride,
                           same ? ", padded by half their kernel" : ", without padding",
                           ", on samples of ", input.str(), "; no pooling: weights do not tell"));
      return tried;
    }
  }
  return made;
}

void Arranger::arrange_into(InferredNetwork& into) const {
  into.report.resize(file_.entries().size());
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    for (size_t j = 0; j < item.layers.size(); ++j) {
      const ModuleLayer& m = item.layers[j];
      for (const ModuleParam& p : m.params) {
        const std::string path =
            cat("(0, 0, ", i, ", 0)", item.residual ? cat("/", j) : "", "/", p.name);
        into.params.push_back({path, p.pieces});
        for (const InferredPiece& piece : p.pieces) {
          InferredTensor& row = into.report[piece.tensor];
          row.became += cat(row.became.empty() ? "" : ", ", path);
          row.why = cat(m.config.def->name, ": ", m.why);
          row.confidence = m.confidence;
        }
      }
    }
  }
  for (size_t t = 0; t < into.report.size(); ++t) {
    into.report[t].tensor = file_.entries()[t].name;
    if (!into.report[t].became.empty()) continue;
    into.report[t].became = "nothing";
    into.report[t].why = "a table that is computed, not trained";
  }
}

// One line: the open questions of the file, grouped by the option that answers them.
Error Arranger::open_questions() const {
  constexpr size_t kShown = 3;  // of one kind
  std::vector<std::string> options;
  for (const Guess& g : reader_.guesses) {
    if (std::find(options.begin(), options.end(), g.option) == options.end())
      options.push_back(g.option);
  }
  std::vector<std::string> groups;
  for (const std::string& option : options) {
    std::vector<std::string> what;
    for (const Guess& g : reader_.guesses) {
      if (g.option == option) what.push_back(g.what);
    }
    const size_t more = what.size() > kShown ? what.size() - kShown : 0;
    what.resize(what.size() - more);
    groups.push_back(cat(join(what, ", "), more > 0 ? cat(" and ", more, " more") : "",
                         option.empty() ? "" : cat(" (", option, ")")));
  }
  return refuse(
      cat("weights do not tell ", join(groups, "; "),
          "; give the options, here or to loom convert, or --assume to take the usual choices"));
}

Result<InferredNetwork> Arranger::arrange() {
  if (layers_.empty()) return refuse("no tensor is known as a weight");
  LOOM_ASSIGN(const bool blocks, decoder());
  if (!blocks) LOOM_TRY(row());
  LOOM_ASSIGN(NetworkSpec spec, fit());
  InferredNetwork made{std::move(spec), {}, {}, {}};
  arrange_into(made);
  if (!options_.assume && !reader_.guesses.empty()) return open_questions();
  made.assumptions = reader_.assumptions;
  return made;
}

}  // namespace

Result<InferredNetwork> arrange_modules(std::vector<ModuleLayer> layers, ModuleReader& reader,
                                        const TensorFile& file, const std::string& where,
                                        const InferOptions& options) {
  return Arranger(std::move(layers), reader, file, where, options).arrange();
}

}  // namespace loom::core
