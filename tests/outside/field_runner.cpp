// Random networks for tests/outside/export_check.py. Each is the example of a layer kind. Every
// field of that kind is drawn away from its default, as far as the network stays valid.
//   field_runner FIRST COUNT
//   -> {"kind": "Dense", "away": ["bias", ...], "left": ["in"], "batches": true, "net": {...}}
//   (a line for each).
#include <algorithm>
#include <iostream>
#include <random>
#include <string>

#include "bridge/network_json.hpp"
#include "grid/network.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxValues = 20'000;  // of a parameter or of the output of a cell

constexpr int kAloneAttempts = 24, kAttempts = 120;  // of a field

class Drawer {
 public:
  Drawer(uint64_t seed, const LayerDef& def, const LayerExample& example)
      : random_(0x9e3779b97f4a7c15u * (seed + 1)), def_(def), sample_(example.input) {
    layers_ = *make_layers(example.layers);
  }
  JsonValue run();

 private:
  using Layers = std::vector<LayerConfig>;
  int64_t upto(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)); }
  bool fits(const Layers& layers, const Shape& sample) const;
  bool takes_batches() const;
  bool try_value(size_t field, const LayerConfig& drawn);
  bool draw(size_t field);
  void set(LayerConfig& layer, size_t field);
  LayerConfig* find(Layers& layers, size_t& top) const;
  bool away(const LayerConfig& layer, size_t field) const;
  NetworkSpec spec(const Layers& layers, const Shape& sample) const;

  std::mt19937_64 random_;
  const LayerDef& def_;
  Layers layers_;
  Shape sample_;
};

NetworkSpec Drawer::spec(const Layers& layers, const Shape& sample) const {
  NetworkSpec made{GridSpec(1, 1, std::ssize(layers), 1), sample};
  for (int64_t i = 0; i < std::ssize(layers); ++i)
    (void)made.grid.put({0, 0, i, 0}, {layers[static_cast<size_t>(i)]});
  return made;
}

// True if three samples can be computed at once.
bool Drawer::takes_batches() const {
  for (const int64_t samples : {1, 3}) {
    const auto network = Network::finalize(spec(layers_, sample_).grid, sample_.after(samples));
    if (!network.ok() || network->output()[0] != samples) return false;
    for (const InputSpec& input : network->extra_inputs())
      if (!input.batched) return false;
  }
  return true;
}

bool Drawer::fits(const Layers& layers, const Shape& sample) const {
  const Result<Network> network = Network::finalize(spec(layers, sample).grid, sample.after(1));
  if (!network.ok()) return false;
  for (const Param& p : network->params())
    if (p.spec.shape.count() > kMaxValues) return false;
  for (const GridNode& cell : network->cells())
    if (cell.out.count() > kMaxValues || cell.out.count() < 1) return false;
  return true;
}

LayerConfig* find_kind(LayerConfig& layer, const LayerDef& def) {
  if (layer.def == &def) return &layer;
  for (LayerConfig& child : layer.children) {
    if (LayerConfig* found = find_kind(child, def); found != nullptr) return found;
  }
  return nullptr;
}

// The first layer of the kind, and the number of its cell.
LayerConfig* Drawer::find(Layers& layers, size_t& top) const {
  for (top = 0; top < layers.size(); ++top) {
    if (LayerConfig* found = find_kind(layers[top], def_); found != nullptr) return found;
  }
  return nullptr;
}

bool Drawer::away(const LayerConfig& layer, size_t field) const {
  const FieldDesc& desc = def_.fields[field];
  const auto i = static_cast<int>(field);
  if (desc.type == FieldType::text) return layer.text(i) != desc.default_text;
  if (desc.type != FieldType::list) return layer.real(i) != desc.default_number;
  const std::vector<int64_t>& list = layer.list(i);
  if (desc.default_number < desc.min) return !list.empty();
  return list.size() != 1 || list[0] != static_cast<int64_t>(desc.default_number);
}

// Words that a text field may have: those that its description lists, or activations.
std::vector<std::string> words_of(const FieldDesc& desc) {
  if (desc.doc.find("function") == 0)
    return {"tanh", "sigmoid", "relu", "silu", "gelu_erf", "gelu_tanh", "exp", "sqrt"};
  std::vector<std::string> words = {""};
  for (const char c : desc.doc) {
    if (c == ',' || c == ' ') {
      if (!words.back().empty() && words.back() != "or") words.emplace_back();
      if (words.back() == "or") words.back().clear();
    } else {
      words.back() += c;
    }
  }
  return words;
}

void Drawer::set(LayerConfig& layer, size_t field) {
  const FieldDesc& desc = def_.fields[field];
  const auto i = static_cast<int>(field);
  const auto near = [&] {
    const auto least = static_cast<int64_t>(std::max(desc.min, -3.0));
    const auto most = static_cast<int64_t>(std::min(desc.max, 9.0));
    return least + upto(std::max<int64_t>(most - least + 1, 1));
  };
  if (desc.type == FieldType::boolean) layer.values[field] = FieldValue(1 - desc.default_number);
  if (desc.type == FieldType::integer)
    layer.values[field] = FieldValue(static_cast<double>(near()));
  if (desc.type == FieldType::real) {
    constexpr double kValues[] = {0.25, 0.75, 1.5, 3, 0.03125, 50};
    layer.values[field] = FieldValue(std::clamp(kValues[upto(6)], desc.min, desc.max));
  }
  if (desc.type == FieldType::text) {
    const std::vector<std::string> words = words_of(desc);
    layer.set_text(i, words[static_cast<size_t>(upto(std::ssize(words)))]);
  }
  if (desc.type != FieldType::list) return;
  std::vector<int64_t> list(static_cast<size_t>(1 + upto(4)));
  if (!layer.list(i).empty() && upto(2) == 0) list.resize(layer.list(i).size());
  for (int64_t& v : list) v = near();
  layer.set_list(i, std::move(list));
}

// Replaces the current layer by the drawn one. It tries three ways: with the other layers
// unchanged, with matching extents of the input, or without the layers after it.
bool Drawer::try_value(size_t field, const LayerConfig& drawn) {
  Layers layers = layers_;
  size_t top = 0;
  LayerConfig* mine = find(layers, top);
  const double before = mine->values[field].number;
  *mine = drawn;
  Shape sample = sample_;
  for (const bool resized : {false, true}) {
    for (int axis = 0; resized && axis < sample.rank(); ++axis) {
      if (sample[axis] == static_cast<int64_t>(before) && drawn.values[field].number >= 1)
        sample[axis] = static_cast<int64_t>(drawn.values[field].number);
    }
    const Layers alone(layers.begin(), layers.begin() + static_cast<ptrdiff_t>(top) + 1);
    for (const Layers& candidate : {layers, alone}) {
      if (!fits(candidate, sample)) continue;
      layers_ = candidate;
      sample_ = sample;
      return true;
    }
  }
  return false;
}

bool Drawer::draw(size_t field) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    size_t top = 0;
    LayerConfig drawn = *find(layers_, top);
    set(drawn, field);
    // Some values fit only those of another field, such as groups and channels.
    const auto other = static_cast<size_t>(upto(std::ssize(def_.fields)));
    if (attempt >= kAloneAttempts && other != field) {
      set(drawn, other);
      if (!away(drawn, other)) continue;
    }
    if (away(drawn, field) && try_value(field, drawn)) return true;
  }
  return false;
}

JsonValue names(const std::vector<std::string>& all) {
  JsonValue list = JsonValue::array();
  for (const std::string& name : all) list.push(JsonValue::string(name));
  return list;
}

JsonValue Drawer::run() {
  std::vector<size_t> order(def_.fields.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  for (const size_t field : order) (void)draw(field);
  std::vector<std::string> moved, left;
  size_t top = 0;
  const LayerConfig& mine = *find(layers_, top);
  for (size_t i = 0; i < def_.fields.size(); ++i)
    (away(mine, i) ? moved : left).emplace_back(def_.fields[i].name);
  JsonValue out = JsonValue::object();
  out.add("kind", JsonValue::string(std::string(def_.name)));
  out.add("away", names(moved));
  out.add("left", names(left));
  out.add("batches", JsonValue::boolean(takes_batches()));
  out.add("net", network_json(spec(layers_, sample_)));
  return out;
}

}  // namespace
}  // namespace loom::core

int main(int count, char** words) {
  using namespace loom::core;
  if (count != 3) {
    std::cerr << "usage: field_runner FIRST COUNT\n";
    return 2;
  }
  std::vector<std::pair<const LayerDef*, LayerExample>> kinds;
  for (const LayerDef* def : layer_table()) {
    // Fields of a Graph are its edges, which descriptions give by names.
    if (def->example != nullptr && !def->fields.empty() && !def->wired)
      kinds.emplace_back(def, def->example());
  }
  const uint64_t first = std::stoull(words[1]), last = first + std::stoull(words[2]);
  for (uint64_t seed = first; seed < last; ++seed) {
    const auto& [def, example] = kinds[seed % kinds.size()];
    std::cout << dump_json(Drawer(seed, *def, example).run()) << "\n";
  }
  return 0;
}
