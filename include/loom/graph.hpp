// Graphs of layers: for networks that are no row. graph_layers.hpp has the layers that only a graph
// can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/graph_layers.hpp"
#include "loom/layers.hpp"

namespace loom {

// Layers as nodes of a graph without cycles, each reading the values it names: branches, joins and
// skips of any kind. A node reads the input or nodes that were added before it.
//
//   Graph g;
//   GraphValue left = g.add(Conv2d{.in = 3, .out = 8, .padding = {1}}, {g.input()});
//   GraphValue right = g.add(Conv2d{.in = 3, .out = 4, .kernel = {1}}, {g.input()}, "narrow");
//   g.output(g.add(Concat{.axis = 1}, {left, right}));                 // [B, 12, H, W]
//   Network::sequential({g, Dense{.in = 12 * 64, .out = 10}}, {.input = {3, 8, 8}});
struct GraphValue {
  int64_t node = -1;  // -1: the input
  int64_t output = 0;
};
class LOOM_API Graph {
 public:
  GraphValue input() const { return {}; }
  // name: for messages and files; "" goes by its number.
  GraphValue add(Layer node, const std::vector<GraphValue>& inputs, std::string name = "");
  // What the node that gives `node` makes of other inputs, with the same weights: a tower that
  // reads two things, a step that is taken again. Training moves one set of weights, and one is
  // stored.
  GraphValue again(const GraphValue& node, const std::vector<GraphValue>& inputs,
                   std::string name = "");
  Graph& output(const GraphValue& value);  // without: that of the last node
  operator Layer() const;

 private:
  std::vector<Layer> nodes_;
  std::vector<int64_t> wires_, outputs_, owners_;
  std::string names_;
};

}  // namespace loom
