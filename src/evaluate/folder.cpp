// One node as a graph of its own. See folder.hpp.
#include "evaluate/folder.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/thread_pool.hpp"
#include "evaluate/evaluator.hpp"

namespace loom::core::evaluate {
namespace {

// Far more than any constant of a model, far less than a machine.
constexpr int64_t kMostMemory = int64_t{1} << 30;

OnnxModel model_of(const OnnxNode& node, int64_t opset, std::span<const OnnxTensor* const> inputs) {
  OnnxModel model;
  model.opsets = {{"", opset}};
  OnnxNode alone = node;
  for (size_t i = 0; i < alone.inputs.size(); ++i) {
    if (i >= inputs.size() || inputs[i] == nullptr) continue;
    alone.inputs[i] = cat("in ", i);
    model.graph.initializers.push_back(*inputs[i]);
    model.graph.initializers.back().name = alone.inputs[i];
  }
  for (size_t i = 0; i < alone.outputs.size(); ++i) {
    if (alone.outputs[i].empty()) continue;
    alone.outputs[i] = cat("out ", i);
    model.graph.outputs.emplace_back().name = alone.outputs[i];
  }
  model.graph.nodes.push_back(std::move(alone));
  return model;
}

Result<OnnxTensor> tensor_of_slot(const Slot& slot) {
  if (slot.kind != Slot::Kind::tensor) return unsupported("its constant output is no tensor");
  const Value& v = slot.tensor;
  if (onnx_type_bytes(v.type) == 0)
    return unsupported(cat("its constant output holds ", onnx_type_name(v.type), " values"));
  OnnxTensor out;
  out.type = v.type;
  out.shape = v.dims;
  const auto* bytes = v.data<std::byte>();
  out.own.assign(bytes, bytes + v.bytes());
  return out;
}

}  // namespace

OnnxFolder evaluating_folder(const Ops& ops) {
  return [&ops](const OnnxNode& node, int64_t opset,
                std::span<const OnnxTensor* const> inputs) -> Result<std::vector<OnnxTensor>> {
    const auto holds_graph = [](const OnnxAttribute& a) { return !a.graphs.empty(); };
    if (std::ranges::any_of(node.attributes, holds_graph))
      return unsupported("holds graphs of its own");
    ThreadPool pool(1);
    LOOM_ASSIGN(Evaluator graph, Evaluator::of(model_of(node, opset, inputs), ops, pool,
                                               {.memory_limit = kMostMemory}));
    LOOM_ASSIGN(const std::vector<Slot> made, graph.run({}));
    std::vector<OnnxTensor> out(node.outputs.size());
    for (size_t i = 0, k = 0; i < out.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      LOOM_ASSIGN(out[i], tensor_of_slot(made[k++]));
    }
    return out;
  };
}

}  // namespace loom::core::evaluate
