// The reader of network descriptions: see network_json.hpp. Strict: an unknown key, a wrong type or
// a value out of range is an Error with its path. Only the layer's table defines the rules for its
// fields.
#include "bridge/network_json.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "grid/network.hpp"
#include "io/files/file.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxCells = uint64_t{1} << 18;
constexpr uint64_t kMaxSample = uint64_t{1} << 31;  // values
constexpr int64_t kMaxExtent = int64_t{1} << 24;

// The context of a layer; each context has keys of its own.
enum class Role { cell, node, child };

class Reader {
 public:
  // owns: the reader may free the values that it has read.
  explicit Reader(std::string where, bool owns = false) : where_(std::move(where)), owns_(owns) {}
  Result<NetworkSpec> network(const JsonValue& root);

 private:
  Error bad(const JsonValue& at, std::string_view path, std::string_view message) const {
    return bad_file(cat(path, path.empty() ? "" : ": ", message), where_, at.offset());
  }
  Error expected(const JsonValue& at, std::string_view path, std::string_view what) const {
    return bad(at, path, cat("expected ", what, ", found ", at.describe()));
  }
  Result<const JsonValue*> member(const JsonValue& object, std::string_view path,
                                  std::string_view key) const;
  Result<std::vector<int64_t>> extents(const JsonValue& value, const std::string& path,
                                       size_t least, size_t most, int64_t min, int64_t max) const;
  Result<Coord> coord(const JsonValue& value, const std::string& path) const;
  Result<GridSpec> grid(const JsonValue& value) const;
  // The network with the names of a state_dict, if the description has them.
  Result<NetworkSpec> named(const JsonValue& root, NetworkSpec spec) const;
  Status cells(const JsonValue& value, GridSpec& into) const;
  Status cell(const JsonValue& value, const std::string& path, GridSpec& into) const;
  Result<Link> link(const JsonValue& value, const std::string& path) const;
  Result<AdapterSpec> adapter(const JsonValue& value, const std::string& path) const;
  Result<const LayerDef*> layer_type(const JsonValue& value, const std::string& path) const;
  Result<LayerConfig> layer(const JsonValue& value, const std::string& path, Role role) const;
  Result<LayerConfig> graph(const JsonValue& value, const std::string& path, Role role) const;
  Result<GraphNames::Node> graph_node(const JsonValue& value, const std::string& path) const;
  Result<std::vector<std::string>> names(const JsonValue& value, const std::string& path) const;
  Result<Field> field(const FieldDesc& desc, const JsonValue& value, const std::string& path) const;

  // Frees a layer after reading, so that the JSON values and the network are never complete in
  // memory at the same time.
  void done(const JsonValue& layer) const {
    if (owns_) const_cast<JsonValue&>(layer) = JsonValue();
  }

  std::string where_;
  bool owns_ = false;
};

std::string number_text(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: integers up to it are exact
  const bool whole = value >= -kExact && value <= kExact &&
                     static_cast<double>(static_cast<int64_t>(value)) == value;
  if (whole) return std::to_string(static_cast<int64_t>(value));
  return JsonValue::real(value).describe();
}

std::string item_path(std::string_view path, size_t i) {
  return cat(path, "[", i, "]");
}

Result<const JsonValue*> Reader::member(const JsonValue& object, std::string_view path,
                                        std::string_view key) const {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return bad(object, path, cat("\"", key, "\" is required, but absent"));
  return value;
}

// A list of `least` to `most` integers from min to max.
Result<std::vector<int64_t>> Reader::extents(const JsonValue& value, const std::string& path,
                                             size_t least, size_t most, int64_t min,
                                             int64_t max) const {
  const std::string count = least == most ? std::to_string(least) : cat(least, " to ", most);
  const std::string what = cat("a list of ", count, " integers");
  if (!value.is_array()) return expected(value, path, what);
  if (value.elements().size() < least || value.elements().size() > most) {
    return bad(value, path, cat("expected ", what, ", found ", value.elements().size()));
  }
  std::vector<int64_t> list;
  for (size_t i = 0; i < value.elements().size(); ++i) {
    const JsonValue& item = value.elements()[i];
    const Result<int64_t> number = item.as_int("");
    if (!number.ok() || *number < min || *number > max) {
      return expected(item, item_path(path, i), cat("an integer from ", min, " to ", max));
    }
    list.push_back(*number);
  }
  return list;
}

Result<Coord> Reader::coord(const JsonValue& value, const std::string& path) const {
  LOOM_ASSIGN(const std::vector<int64_t> at, extents(value, path, 4, 4, 0, kMaxExtent));
  return Coord{at[0], at[1], at[2], at[3]};
}

Result<GridSpec> Reader::grid(const JsonValue& value) const {
  LOOM_ASSIGN(const std::vector<int64_t> e, extents(value, "grid", 4, 4, 1, kMaxExtent));
  uint64_t cells = 1;
  for (const int64_t extent : e) {
    if (checked_mul(cells, static_cast<uint64_t>(extent), cells) && cells <= kMaxCells) continue;
    return bad(value, "grid", cat("has more than ", kMaxCells, " cells"));
  }
  return GridSpec(e[0], e[1], e[2], e[3]);
}

Result<Field> Reader::field(const FieldDesc& desc, const JsonValue& value,
                            const std::string& path) const {
  const std::string range = cat(" from ", number_text(desc.min), " to ", number_text(desc.max));
  const auto in_range = [&](double v) { return v >= desc.min && v <= desc.max; };
  switch (desc.type) {
    case FieldType::text:
      if (!value.is_string()) return expected(value, path, "a string");
      return Field(desc.name, value.text());
    case FieldType::boolean:
      if (!value.is_bool()) return expected(value, path, "true or false");
      return Field(desc.name, *value.as_bool(""));
    case FieldType::integer: {
      const Result<int64_t> number = value.as_int("");
      if (!number.ok() || !in_range(static_cast<double>(*number)))
        return expected(value, path, "an integer" + range);
      return Field(desc.name, *number);
    }
    case FieldType::real: {
      const Result<double> number = value.as_double("");
      if (!number.ok() || !in_range(*number)) return expected(value, path, "a number" + range);
      return Field(desc.name, *number);
    }
    case FieldType::list: break;
  }
  const auto min = static_cast<int64_t>(desc.min), max = static_cast<int64_t>(desc.max);
  if (value.is_int()) {
    const Result<int64_t> number = value.as_int("");
    if (!number.ok() || *number < min || *number > max)
      return expected(value, path, "an integer" + range);
    return Field(desc.name, std::vector<int64_t>{*number});
  }
  if (!value.is_array()) return expected(value, path, "an integer or a list of them");
  LOOM_ASSIGN(std::vector<int64_t> list, extents(value, path, 0, 1 << 20, min, max));
  return Field(desc.name, std::move(list));
}

Result<const LayerDef*> Reader::layer_type(const JsonValue& value, const std::string& path) const {
  if (!value.is_object()) return expected(value, path, "an object");
  LOOM_ASSIGN(const JsonValue* type, member(value, path, "type"));
  if (!type->is_string()) return expected(*type, path + ".type", "the name of a layer");
  if (const LayerDef* def = find_layer(type->text())) return def;
  return bad(
      *type, path + ".type",
      cat("unknown layer '", printable(type->text()), "'; known are ", join(layer_names(), ", ")));
}

// Whether this is a key of a cell, or of a node of a Graph, besides those of its layer.
bool is_place_key(std::string_view key, Role role) {
  switch (role) {
    case Role::cell:
      return key == "at" || key == "dtype" || key == "shared_with" || key == "link" ||
             key == "frozen" || key == "adapters";
    case Role::node: return key == "name" || key == "from" || key == "shared_with";
    case Role::child: break;
  }
  return false;
}

// Obsolete keys of earlier versions, with the value that had no effect.
struct RetiredKey {
  std::string_view layer, key;
  bool value;
};
constexpr RetiredKey kRetiredKeys[] = {{"MultiHeadAttention", "rope_bf16", false}};

bool is_retired(std::string_view layer, std::string_view key, const JsonValue& value) {
  return std::any_of(std::begin(kRetiredKeys), std::end(kRetiredKeys), [&](const RetiredKey& r) {
    return r.layer == layer && r.key == key && value.is_bool() && *value.as_bool("") == r.value;
  });
}

// A name, or a list of names.
Result<std::vector<std::string>> Reader::names(const JsonValue& value,
                                               const std::string& path) const {
  if (value.is_string()) return std::vector<std::string>{value.text()};
  if (!value.is_array()) return expected(value, path, "a name or a list of names");
  std::vector<std::string> list;
  for (size_t i = 0; i < value.elements().size(); ++i) {
    const JsonValue& item = value.elements()[i];
    if (!item.is_string()) return expected(item, item_path(path, i), "a name");
    list.push_back(item.text());
  }
  return list;
}

// The name and inputs of a node; its layer is read separately.
Result<GraphNames::Node> Reader::graph_node(const JsonValue& value, const std::string& path) const {
  GraphNames::Node node;
  if (!value.is_object()) return expected(value, path, "an object");
  if (const JsonValue* name = value.find("name")) {
    if (!name->is_string()) return expected(*name, path + ".name", "a name");
    node.name = name->text();
  }
  if (const JsonValue* from = value.find("from")) {
    LOOM_ASSIGN(node.from, names(*from, path + ".from"));
  }
  if (const JsonValue* owner = value.find("shared_with")) {
    if (!owner->is_string()) return expected(*owner, path + ".shared_with", "the name of a node");
    node.shared_with = owner->text();
  }
  return node;
}

Result<LayerConfig> Reader::graph(const JsonValue& value, const std::string& path,
                                  Role role) const {
  GraphNames wiring;
  std::vector<LayerConfig> nodes;
  bool disabled = false;
  for (const auto& [key, item] : value.members()) {
    const std::string here = cat(path, ".", printable(key));
    if (key == "type" || is_place_key(key, role)) continue;
    if (key == "disabled") {
      if (!item.is_bool()) return expected(item, here, "true or false");
      disabled = *item.as_bool("");
    } else if (key == "inputs") {
      LOOM_ASSIGN(wiring.inputs, names(item, here));
    } else if (key == "outputs") {
      LOOM_ASSIGN(wiring.outputs, names(item, here));
    } else if (key == "nodes") {
      if (!item.is_array()) return expected(item, here, "a list of nodes");
      for (size_t i = 0; i < item.elements().size(); ++i) {
        const JsonValue& node = item.elements()[i];
        const std::string there = item_path(here, i);
        LOOM_ASSIGN(GraphNames::Node node_names, graph_node(node, there));
        wiring.nodes.push_back(std::move(node_names));
        LOOM_ASSIGN(LayerConfig made, layer(node, there, Role::node));
        nodes.push_back(std::move(made));
        done(node);
      }
    } else {
      return bad(item, here, "unknown key; a Graph has inputs, nodes, outputs");
    }
  }
  LOOM_TRY(member(value, path, "nodes"));
  const Result<GraphWiring> edges = wire_graph(wiring);
  if (!edges.ok()) return bad(value, path, edges.error().message);
  Result<LayerConfig> made = make_graph(*edges, std::move(nodes));
  if (!made.ok()) return bad(value, path, made.error().message);
  made->disabled = disabled;
  return made;
}

Result<LayerConfig> Reader::layer(const JsonValue& value, const std::string& path,
                                  Role role) const {
  LOOM_ASSIGN(const LayerDef* def, layer_type(value, path));
  if (def->wired) return graph(value, path, role);
  std::vector<Field> fields;
  std::vector<LayerConfig> children;
  bool disabled = false;
  for (const auto& [key, item] : value.members()) {
    const std::string here = cat(path, ".", printable(key));
    if (key == "type" || is_place_key(key, role)) continue;
    if (key == "disabled") {
      if (!item.is_bool()) return expected(item, here, "true or false");
      disabled = *item.as_bool("");
      continue;
    }
    if (is_retired(def->name, key, item)) continue;
    if (key == "children" && def->container) {
      if (!item.is_array()) return expected(item, here, "a list of layers");
      children.reserve(item.elements().size());
      for (size_t i = 0; i < item.elements().size(); ++i) {
        LOOM_ASSIGN(LayerConfig child, layer(item.elements()[i], item_path(here, i), Role::child));
        children.push_back(std::move(child));
        done(item.elements()[i]);
      }
      continue;
    }
    const auto named = [&name = key](const FieldDesc& f) {
      return f.name == name || (!f.old_name.empty() && f.old_name == name);
    };
    const auto desc = std::find_if(def->fields.begin(), def->fields.end(), named);
    if (desc == def->fields.end()) {
      std::vector<std::string> known;
      for (const FieldDesc& f : def->fields) known.emplace_back(f.name);
      if (def->container) known.emplace_back("children");
      return bad(item, here, cat("unknown key; ", def->name, " has ", join(known, ", ")));
    }
    for (const Field& before : fields) {
      if (before.name == desc->name)
        return bad(item, here, cat("'", desc->name, "' is given twice"));
    }
    LOOM_ASSIGN(Field made, field(*desc, item, here));
    fields.push_back(std::move(made));
  }
  Result<LayerConfig> made = make_layer(*def, fields, std::move(children));
  if (!made.ok()) return bad(value, path, made.error().message);
  made->disabled = disabled;
  return made;
}

Result<Link> Reader::link(const JsonValue& value, const std::string& path) const {
  if (!value.is_object()) return expected(value, path, "an object");
  Link link;
  for (const auto& [key, item] : value.members()) {
    const std::string here = cat(path, ".", printable(key));
    if (key == "from") {
      LOOM_ASSIGN(link.from, coord(item, here));
    } else if (key == "feedback") {
      if (!item.is_bool()) return expected(item, here, "true or false");
      link.feedback = *item.as_bool("");
    } else {
      return bad(item, here, "unknown key; a link has from, feedback");
    }
  }
  LOOM_TRY(member(value, path, "from"));
  return link;
}

Result<AdapterSpec> Reader::adapter(const JsonValue& value, const std::string& path) const {
  if (!value.is_object()) return expected(value, path, "an object");
  AdapterSpec spec;
  for (const auto& [key, item] : value.members()) {
    const std::string here = cat(path, ".", printable(key));
    if (key == "weights") {
      LOOM_ASSIGN(spec.weights, names(item, here));
    } else if (key == "name") {
      if (!item.is_string()) return expected(item, here, "a name");
      spec.name = item.text();
    } else if (key == "rank") {
      if (!item.is_number()) return expected(item, here, "a number");
      LOOM_ASSIGN(spec.rank, item.as_int(here));
    } else if (key == "scale" || key == "dropout") {
      if (!item.is_number()) return expected(item, here, "a number");
      LOOM_ASSIGN((key == "scale" ? spec.scale : spec.dropout), item.as_double(here));
    } else {
      return bad(item, here, "unknown key; an adapter has weights, name, rank, scale, dropout");
    }
  }
  LOOM_TRY(member(value, path, "weights"));
  return spec;
}

Status Reader::cell(const JsonValue& value, const std::string& path, GridSpec& into) const {
  Cell cell;
  LOOM_ASSIGN(cell.layer, layer(value, path, Role::cell));
  LOOM_ASSIGN(const JsonValue* role, member(value, path, "at"));
  LOOM_ASSIGN(const Coord at, coord(*role, path + ".at"));
  if (const JsonValue* dtype = value.find("dtype")) {
    if (!dtype->is_string()) return expected(*dtype, path + ".dtype", "the name of a number type");
    const Result<DType> known = parse_dtype(dtype->text());
    if (!known.ok()) return bad(*dtype, path + ".dtype", known.error().message);
    cell.dtype = *known;
  }
  if (const JsonValue* shared = value.find("shared_with")) {
    LOOM_ASSIGN(cell.shared_with, coord(*shared, path + ".shared_with"));
  }
  if (const JsonValue* from = value.find("link")) {
    LOOM_ASSIGN(cell.link, link(*from, path + ".link"));
  }
  if (const JsonValue* frozen = value.find("frozen")) {
    LOOM_ASSIGN(cell.frozen, names(*frozen, path + ".frozen"));
  }
  if (const JsonValue* adapters = value.find("adapters")) {
    if (!adapters->is_array()) return expected(*adapters, path + ".adapters", "a list of adapters");
    for (size_t i = 0; i < adapters->elements().size(); ++i) {
      LOOM_ASSIGN(AdapterSpec spec,
                  adapter(adapters->elements()[i], item_path(path + ".adapters", i)));
      cell.adapters.push_back(std::move(spec));
    }
  }
  if (into.find(at) != nullptr) {
    return bad(*role, path + ".at", cat("there is a layer at ", at.str(), " already"));
  }
  const Status put = into.put(at, std::move(cell));
  if (!put.ok()) return bad(*role, path + ".at", put.error().message);
  return {};
}

Status Reader::cells(const JsonValue& value, GridSpec& into) const {
  if (!value.is_array()) return expected(value, "cells", "a list of cells");
  for (size_t i = 0; i < value.elements().size(); ++i) {
    LOOM_TRY(cell(value.elements()[i], item_path("cells", i), into));
    done(value.elements()[i]);
  }
  return {};
}

Result<NetworkSpec> Reader::named(const JsonValue& root, NetworkSpec spec) const {
  if (const JsonValue* names = root.find("state_dict")) {
    LOOM_ASSIGN(spec.state_dict, read_state_dict(*names, where_));
  }
  return spec;
}

Result<NetworkSpec> Reader::network(const JsonValue& root) {
  if (!root.is_object()) return expected(root, "", "an object that describes a network");
  for (const auto& [key, item] : root.members()) {
    constexpr std::string_view kNetworkKeys[] = {"loom",   "grid",       "input",  "cells",
                                                 "layers", "state_dict", "columns"};
    if (std::ranges::find(kNetworkKeys, key) != std::end(kNetworkKeys)) continue;
    return bad(item, printable(key), "unknown key; a network has loom, input, grid, cells, layers");
  }
  LOOM_ASSIGN(const JsonValue* version, member(root, "", "loom"));
  const Result<int64_t> number = version->as_int("");
  if (!number.ok() || *number != 1) return expected(*version, "loom", "1, the version of the form");
  LOOM_ASSIGN(const JsonValue* input, member(root, "", "input"));
  LOOM_ASSIGN(const std::vector<int64_t> sizes,
              extents(*input, "input", 1, Shape::kMaxRank - 1, 1, kMaxExtent));
  Shape sample;
  uint64_t values = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    sample = sample.after(sizes[i]);
    if (!checked_mul(values, static_cast<uint64_t>(sizes[i]), values) || values > kMaxSample)
      return bad(*input, "input", cat("has more than ", kMaxSample, " values"));
  }
  if (const JsonValue* row = root.find("layers")) {
    if (root.find("grid") != nullptr || root.find("cells") != nullptr)
      return bad(*row, "layers", "replaces grid and cells; give one or the other");
    if (!row->is_array()) return expected(*row, "layers", "a list of layers");
    const size_t n = row->elements().size();
    if (n < 1) return bad(*row, "layers", "must hold at least one layer");
    if (n > kMaxCells) return bad(*row, "layers", cat("has more than ", kMaxCells, " layers"));
    GridSpec grid(1, 1, static_cast<int64_t>(n), 1);
    for (size_t i = 0; i < n; ++i) {
      LOOM_ASSIGN(LayerConfig made, layer(row->elements()[i], item_path("layers", i), Role::child));
      LOOM_TRY(grid.put({0, 0, static_cast<int64_t>(i), 0}, {std::move(made)}));
      done(row->elements()[i]);
    }
    return named(root, {std::move(grid), sample});
  }
  if (root.find("grid") == nullptr && root.find("cells") == nullptr)
    return bad(root, "", "\"layers\" or \"grid\" is required, but absent");
  LOOM_ASSIGN(const JsonValue* size, member(root, "", "grid"));
  LOOM_ASSIGN(const JsonValue* list, member(root, "", "cells"));
  LOOM_ASSIGN(GridSpec made, grid(*size));
  LOOM_TRY(cells(*list, made));
  return named(root, {std::move(made), sample});
}

}  // namespace

Result<StateDictNames> read_state_dict(const JsonValue& json, const std::string& where) {
  StateDictNames names;
  if (!json.is_object()) return bad_file("state_dict must be an object of texts", where);
  for (const auto& [name, at] : json.members()) {
    LOOM_ASSIGN(std::string text, at.as_string(cat(where, ": state_dict.", printable(name))));
    names.emplace_back(name, std::move(text));
  }
  return names;
}

namespace {

Result<NetworkSpec> checked(Result<NetworkSpec> network, const std::string& where) {
  if (!network.ok()) return network;
  const Result<Network> whole = Network::finalize(network->grid, network->input.after(1));
  if (!whole.ok()) return bad_file(whole.error().message, where);
  return network;
}

}  // namespace

JsonValue description_sections(const JsonValue& description) {
  JsonValue out = JsonValue::object();
  if (const JsonValue* columns = description.find("columns")) out.add("columns", *columns);
  return out;
}

Result<NetworkSpec> parse_network(std::string_view text, const std::string& where) {
  LOOM_ASSIGN(JsonValue root, parse_json(text, where));
  return read_network(std::move(root), where);
}

Result<NetworkSpec> read_network(const JsonValue& json, const std::string& where) {
  return checked(Reader(where).network(json), where);
}

Result<NetworkSpec> read_network(JsonValue&& json, const std::string& where) {
  Result<NetworkSpec> network = Reader(where, true).network(json);
  json = JsonValue();
  return checked(std::move(network), where);
}

Result<NetworkSpec> load_network(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_file(path));
  return parse_network(text, path);
}

}  // namespace loom::core
