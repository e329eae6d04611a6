// The writer of network descriptions: one cell per line, every field with its value, in the order
// of the layer's table.
#include "bridge/network_json.hpp"

#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

JsonValue numbers(const std::vector<int64_t>& list) {
  JsonValue out = JsonValue::array();
  for (const int64_t n : list) out.push(JsonValue::integer(n));
  return out;
}

JsonValue coord_json(const Coord& at) {
  return numbers({at.z, at.y, at.x, at.l});
}

JsonValue field_json(const LayerConfig& layer, int field) {
  switch (layer.def->fields[static_cast<size_t>(field)].type) {
    case FieldType::integer: return JsonValue::integer(layer.integer(field));
    case FieldType::real: return JsonValue::real(layer.real(field));
    case FieldType::boolean: return JsonValue::boolean(layer.flag(field));
    case FieldType::text: return JsonValue::string(std::string(layer.text(field)));
    case FieldType::list: return numbers(layer.list(field));
  }
  return {};
}

// Lists have no defaults that files omit.
bool is_default(const LayerConfig& layer, int field) {
  const FieldDesc& desc = layer.def->fields[static_cast<size_t>(field)];
  if (desc.type == FieldType::list) return false;
  if (desc.type == FieldType::text) return layer.text(field) == desc.default_text;
  return layer.real(field) == desc.default_number;
}

void add_layer(const LayerConfig& layer, JsonValue& out);

JsonValue strings(const std::vector<std::string>& list) {
  JsonValue out = JsonValue::array();
  for (const std::string& text : list) out.push(JsonValue::string(text));
  return out;
}

// A Graph with its names; its numeric wiring is only for passes.
void add_graph(const LayerConfig& graph, JsonValue& out) {
  const GraphNames names = graph_names(graph);
  out.add("inputs", strings(names.inputs));
  JsonValue nodes = JsonValue::array();
  for (size_t i = 0; i < graph.children.size(); ++i) {
    JsonValue item = JsonValue::object();
    if (!names.nodes[i].name.empty()) item.add("name", JsonValue::string(names.nodes[i].name));
    item.add("from", strings(*names.nodes[i].from));
    if (!names.nodes[i].shared_with.empty())
      item.add("shared_with", JsonValue::string(names.nodes[i].shared_with));
    add_layer(graph.children[i], item);
    nodes.push(std::move(item));
  }
  out.add("nodes", std::move(nodes));
  out.add("outputs", strings(names.outputs));
}

void add_layer(const LayerConfig& layer, JsonValue& out) {
  out.add("type", JsonValue::string(std::string(layer.def->name)));
  out.add("disabled", JsonValue::boolean(layer.disabled));
  if (layer.def->wired) return add_graph(layer, out);
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    const FieldDesc& desc = layer.def->fields[i];
    if (desc.late && is_default(layer, static_cast<int>(i))) continue;
    out.add(std::string(desc.name), field_json(layer, static_cast<int>(i)));
  }
  if (!layer.def->container) return;
  JsonValue children = JsonValue::array();
  for (const LayerConfig& child : layer.children) {
    JsonValue item = JsonValue::object();
    add_layer(child, item);
    children.push(std::move(item));
  }
  out.add("children", std::move(children));
}

JsonValue adapters_json(const std::vector<AdapterSpec>& adapters) {
  JsonValue out = JsonValue::array();
  for (const AdapterSpec& spec : adapters) {
    JsonValue item = JsonValue::object();
    item.add("name", JsonValue::string(spec.name));
    item.add("weights", strings(spec.weights));
    item.add("rank", JsonValue::integer(spec.rank));
    item.add("scale", JsonValue::real(spec.scale));
    item.add("dropout", JsonValue::real(spec.dropout));
    out.push(std::move(item));
  }
  return out;
}

JsonValue cell_json(const Coord& at, const Cell& cell) {
  JsonValue out = JsonValue::object();
  out.add("at", coord_json(at));
  add_layer(cell.layer, out);
  if (cell.dtype.has_value())
    out.add("dtype", JsonValue::string(std::string(dtype_name(*cell.dtype))));
  if (cell.shared_with.has_value()) out.add("shared_with", coord_json(*cell.shared_with));
  if (cell.link.has_value()) {
    JsonValue link = JsonValue::object();
    link.add("from", coord_json(cell.link->from));
    link.add("feedback", JsonValue::boolean(cell.link->feedback));
    out.add("link", std::move(link));
  }
  if (!cell.frozen.empty()) out.add("frozen", strings(cell.frozen));
  if (!cell.adapters.empty()) out.add("adapters", adapters_json(cell.adapters));
  return out;
}

}  // namespace

JsonValue state_dict_json(const StateDictNames& names) {
  JsonValue out = JsonValue::object();
  for (const auto& [name, at] : names) out.add(name, JsonValue::string(at));
  return out;
}

JsonValue network_json(const NetworkSpec& network) {
  const GridSpec& grid = network.grid;
  std::vector<int64_t> input;
  for (int i = 0; i < network.input.rank(); ++i) input.push_back(network.input[i]);
  JsonValue out = JsonValue::object();
  out.add("loom", JsonValue::integer(1));
  out.add("grid", numbers({grid.depth(), grid.rows(), grid.cols(), grid.layers()}));
  out.add("input", numbers(input));
  JsonValue cells = JsonValue::array();
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (grid.cell(i) != nullptr) cells.push(cell_json(grid.coord(i), *grid.cell(i)));
  }
  out.add("cells", std::move(cells));
  if (!network.state_dict.empty()) out.add("state_dict", state_dict_json(network.state_dict));
  return out;
}

std::string write_network(const NetworkSpec& network, const JsonValue& sections) {
  const JsonValue json = network_json(network);
  std::string text = "{\n  \"loom\": 1,\n  \"grid\": " + dump_json(*json.find("grid")) +
                     ",\n  \"input\": " + dump_json(*json.find("input")) + ",\n  \"cells\": [";
  const char* separator = "\n    ";
  for (const JsonValue& cell : json.find("cells")->elements()) {
    text += separator + dump_json(cell);
    separator = ",\n    ";
  }
  text += "\n  ]";
  if (const JsonValue* names = json.find("state_dict"))
    text += ",\n  \"state_dict\": " + dump_json(*names);
  if (sections.is_object()) {
    for (const auto& [name, value] : sections.members())
      text += ",\n  \"" + name + "\": " + dump_json(value);
  }
  return text + "\n}\n";
}

}  // namespace loom::core
