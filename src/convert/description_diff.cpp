#include "convert/description_diff.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"

namespace loom::core {
namespace {

struct DescribedLayer {
  std::string at;  // "(0, 0, 1, 0)/0"
  const Node* node = nullptr;
  std::string wiring;  // of a cell: its link, and the owner of its weights
};

struct Described {
  std::vector<DescribedLayer> layers;
  bool whole = true;  // the file keeps every setting, not only those of its operators
};

void add_layers(const Node& node, const std::string& at, std::string wiring, Described& out) {
  out.layers.push_back({at, &node, std::move(wiring)});
  for (size_t i = 0; i < node.children.size(); ++i)
    add_layers(node.children[i], cat(at, "/", i), {}, out);
}

// The names of classes that a trained model's file keeps. Read here, because model_of() would bring
// all of training to a program that only compares files.
std::vector<std::string> class_names(const NetworkSource& source) {
  const JsonValue* model = source.sections.find("model");
  const JsonValue* classes = model != nullptr ? model->find("classes") : nullptr;
  std::vector<std::string> names;
  if (classes == nullptr || !classes->is_array()) return names;
  for (const JsonValue& name : classes->elements()) {
    if (name.is_string()) names.push_back(name.text());
  }
  return names;
}

std::string wiring_of(const Cell& cell) {
  std::string text;
  if (cell.shared_with) text += cat(", weights of ", cell.shared_with->str());
  if (!cell.frozen.empty()) text += cat(", frozen ", join(cell.frozen, ", "));
  if (cell.link)
    text += cat(cell.link->feedback ? ", feedback from " : ", from ", cell.link->from.str());
  return text;
}

Described described(const ModelReport& report) {
  constexpr std::string_view kWhole[] = {"entity", "description with weights", "description",
                                         "arrays of a network", "trained weights"};
  Described out;
  out.whole = std::find(std::begin(kWhole), std::end(kWhole), report.format) != std::end(kWhole);
  for (const GridNode& cell : report.network->cells())
    add_layers(cell.node, cell.at.str(), wiring_of(*cell.cell), out);
  return out;
}

bool same_settings(const Node& a, const Node& b) {
  if (a.disabled() != b.disabled()) return false;
  for (size_t i = 0; i < a.config.def->fields.size(); ++i) {
    const auto field = static_cast<int>(i);
    const FieldType type = a.config.def->fields[i].type;
    const bool same = type == FieldType::text   ? a.config.text(field) == b.config.text(field)
                      : type == FieldType::list ? a.config.list(field) == b.config.list(field)
                                                : static_cast<float>(a.config.real(field)) ==
                                                      static_cast<float>(b.config.real(field));
    if (!same) return false;
  }
  return true;
}

std::string layer_text(const DescribedLayer& layer) {
  const LayerConfig& config = layer.node->config;
  const bool wired = config.def->wired && !config.disabled;
  const std::string settings = wired ? graph_text(config) : settings_of(config);
  return cat(config.def->name, settings.empty() ? "" : ": ", settings,
             config.disabled ? " (disabled)" : "", layer.wiring);
}

TensorDifference text_difference(std::string name, std::string a, std::string b) {
  TensorDifference d;
  d.name = std::move(name);
  d.only_a = b.empty();
  d.only_b = a.empty();
  d.dtype_a = d.only_b ? "" : "text";
  d.dtype_b = d.only_a ? "" : "text";
  d.shape_a = std::move(a);
  d.shape_b = std::move(b);
  return d;
}

void compare_layers(const Described& a, const Described& b, std::vector<TensorDifference>& out) {
  const bool whole = a.whole && b.whole;
  std::unordered_map<std::string_view, const DescribedLayer*> mine, others;
  for (const DescribedLayer& layer : a.layers) mine.emplace(layer.at, &layer);
  for (const DescribedLayer& layer : b.layers) others.emplace(layer.at, &layer);
  for (const DescribedLayer& layer : a.layers) {
    const auto found = others.find(layer.at);
    if (found == others.end()) {
      if (whole) out.push_back(text_difference(cat(layer.at, " layer"), layer_text(layer), ""));
      continue;
    }
    const DescribedLayer& other = *found->second;
    const bool same_kind = layer.node->config.def == other.node->config.def;
    if (!whole && (!same_kind || layer.node->params.empty())) continue;
    const bool same =
        same_kind && same_settings(*layer.node, *other.node) && layer.wiring == other.wiring;
    if (!same)
      out.push_back(text_difference(cat(layer.at, " layer"), layer_text(layer), layer_text(other)));
  }
  for (const DescribedLayer& layer : b.layers) {
    if (whole && mine.find(layer.at) == mine.end())
      out.push_back(text_difference(cat(layer.at, " layer"), "", layer_text(layer)));
  }
}

}  // namespace

Result<std::vector<TensorDifference>> compare_descriptions(const OpenedModel& a,
                                                           const OpenedModel& b) {
  std::vector<TensorDifference> out;
  LOOM_ASSIGN(const ModelReport first, report_model(a));
  LOOM_ASSIGN(const ModelReport second, report_model(b));
  compare_layers(described(first), described(second), out);
  if (a.network == nullptr || b.network == nullptr) return out;
  const std::vector<std::string> mine = class_names(*a.network), other = class_names(*b.network);
  const auto differ = [](const std::vector<std::string>& x, const std::vector<std::string>& y) {
    return !x.empty() && !y.empty() && x != y;  // formats without names do not count
  };
  if (differ(mine, other))
    out.push_back(text_difference("classes", join(mine, ", "), join(other, ", ")));
  return out;
}

}  // namespace loom::core
