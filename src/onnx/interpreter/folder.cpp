// The operators of the interpreter for constants. See folder.hpp.
#include "onnx/interpreter/folder.hpp"

#include "base/text.hpp"
#include "onnx/interpreter/body.hpp"
#include "onnx/operators/alone.hpp"

namespace loom::core::evaluate {
namespace {

// Far more than any constant of a model, far less than a machine.
constexpr int64_t kMaxMemory = int64_t{1} << 30;

}  // namespace

OnnxFolder evaluating_folder(const Ops& ops) {
  return [&ops](const OnnxNode& node, int64_t opset,
                std::span<const OnnxTensor* const> inputs) -> Result<std::vector<OnnxTensor>> {
    const Operator* row = find_operator(node.domain == "ai.onnx" ? "" : node.domain, node.op);
    if (row == nullptr)
      return unsupported(cat("node '", printable(node.name), "' (", printable(node.op),
                             "): an operator that Loom does not know"));
    Alone alone(ops, kMaxMemory);
    return alone.run(*row, node, opset, inputs);
  };
}

}  // namespace loom::core::evaluate
