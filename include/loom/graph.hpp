// Graphs of layers, for networks that are not a chain. graph_layers.hpp has the layers that only a
// graph can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/graph_layers.hpp"
#include "loom/layers.hpp"

namespace loom {

// Layers as nodes of an acyclic graph, with branches, joins and skips of any kind. Each node names
// the values that it reads: the input, or nodes that were added before it.
//
//   Graph g;
//   GraphValue left = g.add(Conv2d{.in = 3, .out = 8, .padding = {1}}, {g.input()});
//   GraphValue right = g.add(Conv2d{.in = 3, .out = 4, .kernel = {1}}, {g.input()}, "narrow");
//   g.output(g.add(Concat{.axis = 1}, {left, right}));                 // [B, 12, H, W]
//   Network::sequential({g, Dense{.in = 12 * 64, .out = 10}}, {.input = {3, 8, 8}});
struct GraphValue {
  int64_t node = -1;  // -1 means the input
  int64_t output = 0;
};
class LOOM_API Graph {
 public:
  GraphValue input() const { return {}; }
  // name: for messages and files; empty uses its index.
  GraphValue add(Layer node, const std::vector<GraphValue>& inputs, std::string name = "");
  // Applies the node of `node` to other inputs, with the same weights: for a tower that reads two
  // inputs, or for a repeated step. The weights are trained and stored once.
  GraphValue again(const GraphValue& node, const std::vector<GraphValue>& inputs,
                   std::string name = "");
  Graph& output(const GraphValue& value);  // default: that of the last node
  operator Layer() const;

 private:
  std::vector<Layer> nodes_;
  std::vector<int64_t> wires_, outputs_, owners_;
  std::string names_;
};

}  // namespace loom
