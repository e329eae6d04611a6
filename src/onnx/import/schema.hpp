// Compares a node with the signature of its operator (onnx/operators/signature.hpp): opset, inputs
// and their types, outputs, attributes. A node that differs is refused before a handler reads it,
// so no request of a node is ignored. Finds the handler of an operator. Room-private.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "onnx/file/model.hpp"
#include "onnx/operators/operator.hpp"

namespace loom::core {

bool is_float(OnnxType type);
bool is_integer(OnnxType type);  // false for booleans

// The type of the first output of `node`, whose inputs have these types (undefined if left out).
// Errors, all without a place: an operator without a signature, or not in the opset; inputs,
// outputs and attributes that the operator does not have, or of another type.
Result<OnnxType> check_node(const OnnxNode& node, int64_t opset,
                            const std::vector<OnnxType>& inputs);
// Whether the table has the operator at all.
bool knows_operator(std::string_view op);

using evaluate::layer_of;

// Whether a handler with this key reads the operator. A key is the name of an operator, the kind of
// a layer ("reduce"), or a layer with its function ("reduce mean").
bool reads(std::string_view key, const evaluate::Operator& row);
// The first handler that reads the operator; null if none does.
template <class Handlers>
auto* handler_of(const Handlers& handlers, std::string_view op) {
  const evaluate::Operator* row = evaluate::find_described(op);
  for (const auto& handler : handlers) {
    if (handler.op == op || (row != nullptr && reads(handler.op, *row))) return &handler;
  }
  return static_cast<decltype(&*handlers.begin())>(nullptr);
}
// Adds the operators that a handler with this key reads.
void add_names(std::string_view key, std::vector<std::string>& names);

}  // namespace loom::core
