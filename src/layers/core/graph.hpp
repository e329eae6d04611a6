// Graph: a container whose children are the nodes of a directed acyclic graph. Each node names the
// values that it reads: inputs of the graph, or outputs of earlier nodes. This covers branches,
// joins, and several inputs and outputs; a row, a Residual and a Parallel are special cases. Nodes
// run in their order.
//
// The wiring is numeric data of the Graph itself, so a pass looks up no name. Users write names:
// GraphNames is that form, which JSON and builders share. Invariant: a node reads only earlier
// values, so cycles are impossible by construction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/core/layer.hpp"

namespace loom::core {

constexpr int64_t kMaxGraphInputs = 64;

// A value of a graph: output `output` of node `node`. If node is kGraphInput, it is the input of
// the graph with that number.
constexpr int64_t kGraphInput = -1;
struct GraphValue {
  int64_t node = kGraphInput;
  int64_t output = 0;
  bool operator==(const GraphValue&) const = default;
};

struct GraphWiring {
  int64_t inputs = 1;
  std::vector<std::vector<GraphValue>> nodes;  // inputs of each child
  std::vector<GraphValue> outputs;
  std::vector<std::string> names;  // of inputs, then of nodes; empty: their numbers
  // For nodes that share the weights of an earlier node: that node; -1 means their own weights.
  // Nodes past the end of the list have their own.
  std::vector<int64_t> owners;
};

// A Graph of these nodes. Errors: a node that reads itself, a later or a missing node; inconsistent
// counts; shared weights of a node that is not earlier, or is of another kind.
Result<LayerConfig> make_graph(const GraphWiring& wiring, std::vector<LayerConfig> nodes);
// The wiring of a Graph in the form of make_graph().
GraphWiring graph_wiring(const LayerConfig& graph);

// The same with names. A node without a name is identified by its number. A node without inputs
// reads the node before it, or the first input. Outputs default to those of the last node. A value
// is "name", the first output of a node or an input, or "name:1", the second output.
struct GraphNames {
  struct Node {
    std::string name;
    std::optional<std::vector<std::string>> from;
    std::string shared_with;  // the node whose weights it shares; "" means its own
  };
  std::vector<std::string> inputs = {"input"};
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
};
// Errors identify the node: an unknown name, a repeated name, or an invalid name.
Result<GraphWiring> wire_graph(const GraphNames& names);
// All names explicit, for writers.
GraphNames graph_names(const LayerConfig& graph);

// Whether a child takes the first input of the graph as ids.
bool graph_takes_ids(const LayerConfig& graph);
// The number of ids for which every table that reads the first input has a row; 0 if no table reads
// it.
int64_t id_rows(const LayerConfig& layer);
int64_t graph_id_rows(const LayerConfig& graph);
// The child whose weights child number `i` shares; -1 means its own.
int64_t graph_owner(const LayerConfig& graph, int64_t i);

}  // namespace loom::core
