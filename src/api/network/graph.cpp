// The builder of graph.hpp: writes the fields that layers/core/graph.cpp reads.
#include "loom/graph.hpp"

#include <utility>

namespace loom {

GraphValue Graph::add(Layer node, const std::vector<GraphValue>& inputs, std::string name) {
  wires_.push_back(static_cast<int64_t>(inputs.size()));
  for (const GraphValue& v : inputs) wires_.insert(wires_.end(), {v.node, v.output});
  names_ += "\n" + std::move(name);  // after the name of the input
  nodes_.push_back(std::move(node));
  return {static_cast<int64_t>(nodes_.size()) - 1, 0};
}
GraphValue Graph::again(const GraphValue& node, const std::vector<GraphValue>& inputs,
                        std::string name) {
  // The input is not a node; creating the network reports that it cannot share weights.
  const bool there = node.node >= 0 && node.node < static_cast<int64_t>(nodes_.size());
  const auto at = static_cast<size_t>(node.node);
  const GraphValue made =
      add(there ? Layer(nodes_[at]) : Layer{"Unary", {}}, inputs, std::move(name));
  owners_.resize(nodes_.size(), -1);
  owners_.back() = there ? node.node : made.node;
  return made;
}
Graph& Graph::output(const GraphValue& value) {
  outputs_.insert(outputs_.end(), {value.node, value.output});
  return *this;
}
Graph::operator Layer() const {
  std::vector<int64_t> outputs = outputs_;
  if (outputs.empty()) outputs = {static_cast<int64_t>(nodes_.size()) - 1, 0};
  return {"Graph",
          {{"wires", wires_}, {"outputs", outputs}, {"names", names_}, {"owners", owners_}},
          nodes_};
}

}  // namespace loom
