// A file whose first axis is not a batch, read as a file for one sample at a time. Exporters write
// such files for a recurrence over one sequence: the first axis of the input is its steps.
// The nodes stay unchanged; only inputs and outputs get an axis of 1 before theirs.
#include "onnx/import/one_sample.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace loom::core {
namespace {

constexpr std::string_view kInner = " of one sample", kAxis = "axis of one sample";

void rename(std::vector<std::string>& names, const std::set<std::string>& which) {
  for (std::string& name : names) {
    if (which.contains(name)) name += kInner;
  }
}

void rename(OnnxGraph& graph, const std::set<std::string>& which) {
  for (OnnxNode& n : graph.nodes) {
    rename(n.inputs, which);
    rename(n.outputs, which);
    for (OnnxAttribute& a : n.attributes) {
      for (OnnxGraph& inner : a.graphs) rename(inner, which);
    }
  }
}

// Squeeze or Unsqueeze of the first axis. Opsets before 13 have the axes as an attribute.
OnnxNode moved(std::string op, std::string from, std::string to, bool older) {
  OnnxNode n;
  n.name = to;
  n.op = std::move(op);
  n.inputs = {std::move(from)};
  n.outputs = {std::move(to)};
  if (older) {
    n.attributes = {onnx_attribute("axes", std::vector<int64_t>{0})};
  } else {
    n.inputs.emplace_back(kAxis);
  }
  return n;
}

bool is_before_13(const OnnxModel& model) {
  return std::ranges::any_of(model.opsets, [](const auto& o) {
    return (o.first.empty() || o.first == "ai.onnx") && o.second < 13;
  });
}

}  // namespace

OnnxModel with_one_sample(const OnnxModel& model, const std::string& batch) {
  OnnxModel out = model;
  for (std::vector<OnnxValue>* values : {&out.graph.inputs, &out.graph.outputs}) {
    for (OnnxValue& v : *values) {
      for (OnnxDim& dim : v.shape) {
        if (dim.extent < 0 && dim.symbol == batch) dim = {1, ""};
      }
    }
  }
  return out;
}

OnnxModel as_one_sample(const OnnxModel& model) {
  OnnxModel out = model;
  OnnxGraph& graph = out.graph;
  const bool older = is_before_13(model);
  std::set<std::string> ports, constants;
  for (const OnnxTensor& t : graph.initializers) constants.insert(t.name);
  for (const OnnxValue& v : graph.outputs) ports.insert(v.name);
  std::vector<OnnxNode> before;
  for (OnnxValue& v : graph.inputs) {
    if (constants.contains(v.name)) continue;
    ports.insert(v.name);
    v.shape.insert(v.shape.begin(), OnnxDim{1, ""});
    before.push_back(moved("Squeeze", v.name, v.name + std::string(kInner), older));
  }
  rename(graph, ports);
  graph.nodes.insert(graph.nodes.begin(), before.begin(), before.end());
  for (OnnxValue& v : graph.outputs) {
    if (v.has_shape) v.shape.insert(v.shape.begin(), OnnxDim{1, ""});
    graph.nodes.push_back(moved("Unsqueeze", v.name + std::string(kInner), v.name, older));
  }
  if (!older)
    graph.initializers.push_back(onnx_tensor(std::string(kAxis), {1}, std::vector<int64_t>{0}));
  return out;
}

}  // namespace loom::core
