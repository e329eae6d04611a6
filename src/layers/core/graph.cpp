// The kind Graph: see graph.hpp. Fields `wires` and `outputs` hold values as pairs (node, output).
// For each child, wires has a count and that many pairs.
#include "layers/core/graph.hpp"
#include "layers/core/field_tables.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"

namespace loom::core {
namespace {

using namespace fields::graph;
static_assert(kFields[kInputs].max == kMaxGraphInputs);
// The defaults are below the minimum: these lists are empty unless they are set.

// Reads pairs from a list during passes, without allocation.
class EdgeReader {
 public:
  explicit EdgeReader(const std::vector<int64_t>& list) : list_(list) {}
  bool done() const { return at_ >= list_.size(); }
  int64_t count() { return next(); }
  GraphValue value() {
    const int64_t node = next();
    return {node, next()};
  }

 private:
  int64_t next() { return at_ < list_.size() ? list_[at_++] : -2; }
  const std::vector<int64_t>& list_;
  size_t at_ = 0;
};

// The name of a value in a message.
std::string described(const GraphValue& v) {
  if (v.node == kGraphInput) return cat("input ", v.output);
  return v.output == 0 ? cat("node ", v.node) : cat("output ", v.output, " of node ", v.node);
}

Status check_value(const GraphWiring& w, const GraphValue& v, size_t before, std::string_view who) {
  if (v.node == kGraphInput) {
    if (v.output >= 0 && v.output < w.inputs) return {};
    return invalid(
        cat("Graph: ", who, " reads input ", v.output, ", but the graph has ", w.inputs));
  }
  if (v.node < kGraphInput || v.output < 0)
    return invalid(cat("Graph: ", who, " reads a value that cannot be: ", v.node, ", ", v.output));
  if (v.node < static_cast<int64_t>(before)) return {};
  return invalid(cat("Graph: ", who, " reads node ", v.node,
                     ", which is not before it; nodes run in their order"));
}

// Two nodes may share weights if they have one kind, or parameters of the same names and shapes. An
// example is a table and the matrix of a product without a bias.
bool may_share(const LayerConfig& a, const LayerConfig& b) {
  if (a.def == b.def) return true;
  const auto specs = [](const LayerConfig& c) {
    std::vector<ParamSpec> list;
    if (c.def->params != nullptr) c.def->params(c, list);
    return list;
  };
  return std::ranges::equal(specs(a), specs(b), [](const ParamSpec& x, const ParamSpec& y) {
    return x.name == y.name && x.shape == y.shape;
  });
}

Status check_owners(const GraphWiring& w, const std::vector<LayerConfig>& nodes) {
  for (size_t i = 0; i < w.owners.size(); ++i) {
    const int64_t owner = w.owners[i];
    if (owner < 0) continue;
    const bool before = i < nodes.size() && owner < static_cast<int64_t>(i);
    if (before && may_share(nodes[i], nodes[static_cast<size_t>(owner)])) continue;
    return invalid(cat("Graph: node ", i, " shares weights with node ", owner,
                       ", which must be before it and have the same parameters"));
  }
  return {};
}

// Values of a pass (shapes or tensors) by node.
template <class T>
class Values {
 public:
  Values(std::span<const T> inputs, size_t nodes) : inputs_(inputs) { made_.reserve(nodes); }
  void add(std::vector<T> outputs) { made_.push_back(std::move(outputs)); }
  Result<T> find(const GraphValue& v, std::string_view who) const {
    if (v.node == kGraphInput) {
      if (v.output >= 0 && static_cast<size_t>(v.output) < inputs_.size())
        return inputs_[static_cast<size_t>(v.output)];
    } else if (v.node >= 0 && static_cast<size_t>(v.node) < made_.size()) {
      const std::vector<T>& outputs = made_[static_cast<size_t>(v.node)];
      if (v.output >= 0 && static_cast<size_t>(v.output) < outputs.size())
        return outputs[static_cast<size_t>(v.output)];
    }
    return invalid(cat("Graph: ", who, " reads ", described(v), ", which is not there"));
  }

 private:
  std::span<const T> inputs_;
  std::vector<std::vector<T>> made_;
};

// The walk that shape inference and the pass share: `run(i, inputs)` returns the outputs of node i.
template <class T, class Run>
Result<std::vector<T>> walk(const LayerConfig& c, std::span<const T> inputs, Run&& run) {
  Values<T> values(inputs, c.children.size());
  EdgeReader edges(c.list(kWires));
  std::vector<T> read;
  for (size_t i = 0; i < c.children.size(); ++i) {
    read.clear();
    const int64_t count = edges.count();
    for (int64_t k = 0; k < count; ++k) {
      LOOM_ASSIGN(T value, values.find(edges.value(), cat("node ", i)));
      read.push_back(std::move(value));
    }
    LOOM_ASSIGN(std::vector<T> made, run(i, std::span<const T>(read)));
    values.add(std::move(made));
  }
  std::vector<T> out;
  for (EdgeReader results(c.list(kOutputs)); !results.done();) {
    LOOM_ASSIGN(T value, values.find(results.value(), "the output"));
    out.push_back(std::move(value));
  }
  if (out.empty()) return invalid("Graph: it has no output");
  return out;
}

// The label of a node in messages: its name, if it has one.
std::string node_label(const LayerConfig& c, size_t i) {
  const std::vector<std::string> names = graph_wiring(c).names;
  const size_t at = static_cast<size_t>(c.integer(kInputs)) + i;
  if (at < names.size() && !names[at].empty()) return cat("node '", printable(names[at]), "'");
  return cat("node ", i);
}

// Rejects a node whose values are not read. It is a mistake of the author: its weights would be
// stored and never trained.
Status check_used(const LayerConfig& c) {
  std::vector<bool> used(c.children.size());
  const auto mark = [&](const GraphValue& v) {
    if (v.node >= 0 && static_cast<size_t>(v.node) < used.size())
      used[static_cast<size_t>(v.node)] = true;
  };
  EdgeReader edges(c.list(kWires));
  while (!edges.done()) {
    for (int64_t k = edges.count(); k > 0; --k) mark(edges.value());
  }
  for (EdgeReader results(c.list(kOutputs)); !results.done();) mark(results.value());
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    return invalid(
        cat("Graph: ", node_label(c, i),
            " is not read by any node and is not an output; remove it or name it in outputs"));
  }
  return {};
}

// The number of ids that a value may hold: those of an Input. 0 means that it holds numbers.
int64_t ids_of(const LayerConfig& c, const GraphValue& v) {
  if (v.node < 0) return 0;
  const LayerConfig& source = c.children[static_cast<size_t>(v.node)];
  return source.def->input != nullptr ? source.def->input(source).ids : 0;
}

Status check_read(const LayerConfig& c, size_t i, bool wants, const GraphValue& v) {
  if (v == GraphValue{} ? wants == graph_takes_ids(c) : !wants && ids_of(c, v) == 0) return {};
  if (!wants)
    return invalid(cat("Graph: ", node_label(c, i), " reads ids, which an Embedding alone can"));
  const int64_t ids = ids_of(c, v), rows = id_rows(c.children[i]);
  if (ids == 0) {
    return invalid(cat("Graph: ", node_label(c, i),
                       " takes ids, but reads numbers; ids come from "
                       "the input, or from an Input with `ids`"));
  }
  if (ids <= rows) return {};
  return invalid(
      cat("Graph: ", node_label(c, i), " has ", rows, " rows, but reads ids up to ", ids - 1));
}

// Ids and numbers have the same size in memory, so a pass would not notice a mix-up. Only tables
// with enough rows may read ids. An Input reads no values.
Status check_ids(const LayerConfig& c) {
  EdgeReader edges(c.list(kWires));
  for (size_t i = 0; i < c.children.size(); ++i) {
    const bool wants = takes_ids(c.children[i]);
    for (int64_t k = edges.count(); k > 0; --k) {
      const GraphValue v = edges.value();
      if (c.children[i].def->input == nullptr) LOOM_TRY(check_read(c, i, wants, v));
    }
  }
  for (EdgeReader results(c.list(kOutputs)); !results.done();) {
    if (ids_of(c, results.value()) > 0) return invalid("Graph: ids cannot be an output");
  }
  return {};
}

Result<std::vector<Shape>> infer_graph(const LayerConfig& c, std::span<const Shape> in) {
  if (static_cast<int64_t>(in.size()) != c.integer(kInputs)) {
    return invalid(cat("Graph takes ", c.integer(kInputs), " inputs, but ", in.size(),
                       in.size() == 1 ? " is given" : " are given"));
  }
  LOOM_TRY(check_used(c));
  LOOM_TRY(check_ids(c));
  return walk<Shape>(c, in, [&](size_t i, std::span<const Shape> read) {
    Result<std::vector<Shape>> out = infer_all(c.children[i], read);
    if (out.ok()) return out;
    Error error = out.error();
    error.message = cat(node_label(c, i), " of Graph: ", error.message);
    return Result<std::vector<Shape>>(error);
  });
}

Result<std::vector<Tensor>> forward_graph(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const auto inputs = static_cast<size_t>(c.integer(kInputs));
  if (call.inputs().size() < inputs) {
    return invalid(
        cat("Graph takes ", inputs, " inputs, but ", call.inputs().size(), " are given"));
  }
  const auto run = [&](size_t i, std::span<const Tensor> read) -> Result<std::vector<Tensor>> {
    LOOM_ASSIGN(const LayerOutputs made, call.child(i, read));
    return std::vector<Tensor>(made.all().begin(), made.all().end());
  };
  return walk<Tensor>(c, call.inputs().first(inputs), run);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Names must be usable in "from": no colon, no line break, and not a number, because numbers
// identify nodes without a name.
Status check_name(std::string_view name) {
  if (!name.empty() && !is_number(name) && name.find_first_of(":\n") == std::string_view::npos)
    return {};
  return invalid(cat("Graph: '", printable(name),
                     "' cannot be a name: it must not be empty or a number, nor hold ':'"));
}

using NameTable = std::map<std::string, int64_t, std::less<>>;  // node, or -1 - input

Result<GraphValue> parse_value(const NameTable& table, std::string_view text,
                               std::string_view who) {
  const size_t colon = text.rfind(':');
  const std::string_view name = text.substr(0, colon);
  GraphValue v;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    if (!is_number(digits) || digits.size() > 4)
      return invalid(cat("Graph: ", who, " reads '", printable(text),
                         "'; give the number of an output after the colon"));
    for (const char c : digits) v.output = v.output * 10 + (c - '0');
  }
  const auto found = table.find(name);
  if (found == table.end()) {
    std::vector<std::string> known;
    for (const auto& entry : table) known.push_back(entry.first);
    if (known.size() > 12) known.resize(12);
    return invalid(cat("Graph: ", who, " reads '", printable(name),
                       "', which no node before it is called; before it are ", join(known, ", "),
                       table.size() > 12 ? ", ..." : ""));
  }
  if (found->second >= 0) {
    v.node = found->second;
    return v;
  }
  if (v.output != 0)
    return invalid(cat("Graph: ", who, " reads output ", v.output, " of input '", printable(name),
                       "'; an input is one value"));
  return GraphValue{kGraphInput, -1 - found->second};
}

// The node whose weights `who` shares; -1 means its own.
Result<int64_t> parse_owner(const NameTable& table, const std::string& name, std::string_view who) {
  if (name.empty()) return -1;
  const auto found = table.find(name);
  if (found != table.end() && found->second >= 0) return found->second;
  return invalid(cat("Graph: ", who, " shares weights with '", printable(name),
                     "', which no node before it is called"));
}

LayerExample example_graph() {
  // h = a(x); y = d(b(h) * c(h))
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 1, 0, 0, 1, 0, 0, 2, 1, 0, 2, 0, 1, 3, 0}},
             {"outputs", std::vector<int64_t>{4, 0}}},
            {sketch_dense(5, 7, "tanh"),
             sketch_dense(7, 9),
             sketch_dense(7, 9, "silu"),
             {LayerKind::binary, {{"function", "mul"}}},
             sketch_dense(9, 4)}}}};
}

}  // namespace

Result<LayerConfig> make_graph(const GraphWiring& w, std::vector<LayerConfig> nodes) {
  if (w.nodes.size() != nodes.size())
    return invalid(cat("Graph: ", nodes.size(), " nodes, but wires of ", w.nodes.size()));
  std::vector<int64_t> edges, outputs;
  for (size_t i = 0; i < w.nodes.size(); ++i) {
    edges.push_back(static_cast<int64_t>(w.nodes[i].size()));
    for (const GraphValue& v : w.nodes[i]) {
      LOOM_TRY(check_value(w, v, i, cat("node ", i)));
      edges.insert(edges.end(), {v.node, v.output});
    }
  }
  for (const GraphValue& v : w.outputs) {
    LOOM_TRY(check_value(w, v, nodes.size(), "the output"));
    outputs.insert(outputs.end(), {v.node, v.output});
  }
  std::string names;
  for (size_t i = 0; i < w.names.size(); ++i) {
    if (i > 0) names += '\n';
    names += w.names[i];
  }
  LOOM_TRY(check_owners(w, nodes));
  // A graph without shared weights keeps the older file form.
  const bool shares = std::ranges::any_of(w.owners, [](int64_t owner) { return owner >= 0; });
  std::vector<int64_t> owners = shares ? w.owners : std::vector<int64_t>();
  for (int64_t& owner : owners) {  // for a chain, its first
    if (owner >= 0 && owners[static_cast<size_t>(owner)] >= 0)
      owner = owners[static_cast<size_t>(owner)];
  }
  return make_layer(LayerKind::graph,
                    {{"inputs", w.inputs},
                     {"wires", std::move(edges)},
                     {"outputs", std::move(outputs)},
                     {"names", std::move(names)},
                     {"owners", std::move(owners)}},
                    std::move(nodes));
}

GraphWiring graph_wiring(const LayerConfig& graph) {
  GraphWiring w;
  w.inputs = graph.integer(kInputs);
  for (EdgeReader edges(graph.list(kWires)); !edges.done();) {
    std::vector<GraphValue>& read = w.nodes.emplace_back();
    for (int64_t k = edges.count(); k > 0; --k) read.push_back(edges.value());
  }
  for (EdgeReader results(graph.list(kOutputs)); !results.done();)
    w.outputs.push_back(results.value());
  w.owners = graph.list(kOwners);
  const std::string_view names = graph.text(kNames);
  for (size_t at = 0; !names.empty() && at <= names.size();) {
    const size_t end = std::min(names.find('\n', at), names.size());
    w.names.emplace_back(names.substr(at, end - at));
    at = end + 1;
  }
  return w;
}

Result<GraphWiring> wire_graph(const GraphNames& names) {
  GraphWiring w;
  w.inputs = static_cast<int64_t>(names.inputs.size());
  if (w.inputs < 1 || w.inputs > kMaxGraphInputs)
    return invalid(cat("Graph: it has ", w.inputs, " inputs, must have 1 to ", kMaxGraphInputs));
  NameTable table;
  const auto define = [&](const std::string& name, int64_t value) -> Status {
    if (table.emplace(name, value).second) return {};
    return invalid(cat("Graph: the name '", printable(name), "' occurs twice"));
  };
  for (size_t i = 0; i < names.inputs.size(); ++i) {
    LOOM_TRY(check_name(names.inputs[i]));
    LOOM_TRY(define(names.inputs[i], -1 - static_cast<int64_t>(i)));
    w.names.push_back(names.inputs[i]);
  }
  for (size_t i = 0; i < names.nodes.size(); ++i) {
    const GraphNames::Node& node = names.nodes[i];
    const bool named = !node.name.empty();
    const std::string who = named ? cat("node '", printable(node.name), "'") : cat("node ", i);
    std::vector<GraphValue>& read = w.nodes.emplace_back();
    if (!node.from.has_value())
      read.push_back(i == 0 ? GraphValue{} : GraphValue{static_cast<int64_t>(i) - 1, 0});
    for (const std::string& from : node.from.value_or(std::vector<std::string>{})) {
      LOOM_ASSIGN(const GraphValue v, parse_value(table, from, who));
      read.push_back(v);
    }
    if (named) LOOM_TRY(check_name(node.name));
    LOOM_ASSIGN(const int64_t owner, parse_owner(table, node.shared_with, who));
    w.owners.push_back(owner);
    LOOM_TRY(define(named ? node.name : std::to_string(i), static_cast<int64_t>(i)));
    w.names.push_back(node.name);
  }
  for (const std::string& output : names.outputs) {
    LOOM_ASSIGN(const GraphValue v, parse_value(table, output, "the list of outputs"));
    w.outputs.push_back(v);
  }
  if (names.outputs.empty()) w.outputs.push_back({static_cast<int64_t>(names.nodes.size()) - 1, 0});
  return w;
}

GraphNames graph_names(const LayerConfig& graph) {
  const GraphWiring w = graph_wiring(graph);
  GraphNames out;
  out.inputs.clear();
  const auto name = [&](size_t i) { return i < w.names.size() ? w.names[i] : std::string(); };
  const auto inputs = static_cast<size_t>(w.inputs);
  for (size_t i = 0; i < inputs; ++i) {
    const std::string given = name(i);
    out.inputs.push_back(!given.empty() ? given : inputs == 1 ? "input" : cat("input", i));
  }
  const auto text = [&](const GraphValue& v) {
    if (v.node == kGraphInput) return out.inputs[static_cast<size_t>(v.output)];
    const std::string given = name(inputs + static_cast<size_t>(v.node));
    const std::string base = given.empty() ? std::to_string(v.node) : given;
    return v.output == 0 ? base : cat(base, ":", v.output);
  };
  for (size_t i = 0; i < w.nodes.size(); ++i) {
    GraphNames::Node& node = out.nodes.emplace_back();
    node.name = name(inputs + i);
    std::vector<std::string>& from = node.from.emplace();
    for (const GraphValue& v : w.nodes[i]) from.push_back(text(v));
    const int64_t owner = graph_owner(graph, static_cast<int64_t>(i));
    if (owner >= 0) node.shared_with = text({owner, 0});
  }
  for (const GraphValue& v : w.outputs) out.outputs.push_back(text(v));
  return out;
}

int64_t graph_owner(const LayerConfig& graph, int64_t i) {
  const std::vector<int64_t>& owners = graph.list(kOwners);
  return i < static_cast<int64_t>(owners.size()) ? owners[static_cast<size_t>(i)] : -1;
}

bool graph_takes_ids(const LayerConfig& graph) {
  EdgeReader edges(graph.list(kWires));
  for (const LayerConfig& child : graph.children) {
    for (int64_t k = edges.count(); k > 0; --k) {
      if (edges.value() == GraphValue{} && takes_ids(child)) return true;
    }
  }
  return false;
}

int64_t graph_id_rows(const LayerConfig& graph) {
  int64_t least = 0;
  EdgeReader edges(graph.list(kWires));
  for (const LayerConfig& child : graph.children) {
    for (int64_t k = edges.count(); k > 0; --k) {
      const bool reads = edges.value() == GraphValue{};
      const int64_t rows = reads && takes_ids(child) ? id_rows(child) : 0;
      if (rows > 0 && (least == 0 || rows < least)) least = rows;
    }
  }
  return least;
}

extern const LayerDef kGraph;
const LayerDef kGraph = {.kind = LayerKind::graph,
                         .name = "Graph",
                         .fields = kFields,
                         .container = true,
                         .wired = true,
                         .ragged = true,
                         .infer = infer_graph,
                         .forward = forward_graph,
                         .max_inputs = static_cast<int>(kMaxGraphInputs),
                         .example = example_graph};

}  // namespace loom::core
