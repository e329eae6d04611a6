// Graph: a container whose children are nodes of a directed graph without cycles. Each says which
// values it reads: inputs of the graph, or outputs of nodes before it. Branches, joins of branches
// and several inputs and outputs are all the same then; a row, a Residual and a Parallel are
// special cases. Nodes run in their order.
//
// The wiring is data of the Graph itself, as numbers, so that a pass looks up no name. People write
// names: GraphNames is that form, which JSON and builders share.
// Invariant: a node reads only what stands before it, so there is no cycle by construction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/layer.hpp"

namespace loom::core {

constexpr int64_t kMostGraphInputs = 64;

// A value of a graph: output `output` of node `node`, or, where node is kGraphInput, the input of
// the graph with that number.
constexpr int64_t kGraphInput = -1;
struct GraphValue {
  int64_t node = kGraphInput;
  int64_t output = 0;
  bool operator==(const GraphValue&) const = default;
};

struct GraphWiring {
  int64_t inputs = 1;
  std::vector<std::vector<GraphValue>> nodes;  // what each child reads
  std::vector<GraphValue> outputs;
  std::vector<std::string> names;  // of inputs, then of nodes; empty: numbers are their names
  // Of nodes whose weights are those of a node before them: which one; -1: their own. Nodes behind
  // the list have their own.
  std::vector<int64_t> owners;
};

// A Graph of these nodes. Errors: a node that reads itself, a later one or none; counts that do not
// agree; weights of a node that does not stand before, or is of another kind.
Result<LayerConfig> make_graph(const GraphWiring& wiring, std::vector<LayerConfig> nodes);
// The wiring of a Graph as make_graph() took it.
GraphWiring graph_wiring(const LayerConfig& graph);

// The same with names. A node without one goes by its number. A node that does not say what it
// reads reads the node before it, or the first input; outputs that are not said are those of the
// last node. A value is "name", the first output of a node or an input, or "name:1", the second
// output.
struct GraphNames {
  struct Node {
    std::string name;
    std::optional<std::vector<std::string>> from;
    std::string shared_with;  // the node whose weights it has; "": its own
  };
  std::vector<std::string> inputs = {"input"};
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
};
// Errors name the node: a name that nothing before has, that stands twice, or that is no name.
Result<GraphWiring> wire_graph(const GraphNames& names);
// All of them said, for writers.
GraphNames graph_names(const LayerConfig& graph);

// Whether a child takes the first input of the graph as ids.
bool graph_takes_ids(const LayerConfig& graph);
// The number of ids that every table which reads the first input of a layer has a row for; 0: no
// table does.
int64_t id_rows(const LayerConfig& layer);
int64_t graph_id_rows(const LayerConfig& graph);
// The child whose weights child number `i` has; -1: its own.
int64_t graph_owner(const LayerConfig& graph, int64_t i);

}  // namespace loom::core
