// The builder of graph.hpp: it writes the fields that layers/graph.cpp reads.
#include "loom/graph.hpp"

#include <utility>

namespace loom {

GraphValue Graph::add(Layer node, const std::vector<GraphValue>& inputs, std::string name) {
  wires_.push_back(static_cast<int64_t>(inputs.size()));
  for (const GraphValue& v : inputs) wires_.insert(wires_.end(), {v.node, v.output});
  names_ += "\n" + std::move(name);  // behind that of the input
  nodes_.push_back(std::move(node));
  return {static_cast<int64_t>(nodes_.size()) - 1, 0};
}
GraphValue Graph::again(const GraphValue& node, const std::vector<GraphValue>& inputs,
                        std::string name) {
  // The input is no node: that it cannot share is said when the network is made.
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

Binary::operator Layer() const {
  constexpr const char* kNames[] = {"add", "sub", "mul", "div", "max", "min"};
  return {"Binary", {{"function", std::string(kNames[static_cast<size_t>(function)])}}};
}
Concat::operator Layer() const {
  return {"Concat", {{"axis", axis}}};
}

MatMul::operator Layer() const {
  return {"MatMul", {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}};
}
Constant::operator Layer() const {
  return {"Constant", {{"shape", shape}, {"trained", trained}, {"fill", fill}, {"factor", factor}}};
}
Input::operator Layer() const {
  return {"Input", {{"input", input}, {"shape", shape}, {"batched", batched}, {"ids", ids}}};
}
Unary::operator Layer() const {
  return {"Unary", {{"function", function}}};
}
Reduce::operator Layer() const {
  constexpr const char* kNames[] = {"sum", "mean", "max", "min", "sum_squares", "l1", "l2"};
  return {"Reduce",
          {{"function", std::string(kNames[static_cast<size_t>(function)])},
           {"axes", axes},
           {"keep", keep}}};
}
Slice::operator Layer() const {
  return {"Slice", {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}}};
}
Transpose::operator Layer() const {
  return {"Transpose", {{"axes", axes}}};
}
View::operator Layer() const {
  return {"View", {{"shape", shape}}};
}
Expand::operator Layer() const {
  return {"Expand", {{"shape", shape}}};
}
ConvLstm::operator Layer() const {
  return {"ConvLSTM",
          {{"channels", channels},
           {"filters", filters},
           {"kernel", kernel},
           {"return_sequence", return_sequence}}};
}
Scan::operator Layer() const {
  return {"Scan", {{"width", width}}};
}

SpectralNorm::operator Layer() const {
  return {"SpectralNorm",
          {{"rows", rows}, {"cols", cols}, {"iterations", iterations}, {"eps", eps}}};
}

}  // namespace loom
