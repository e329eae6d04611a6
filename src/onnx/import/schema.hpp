// What ONNX says an operator is: how many inputs of which types, how many outputs, which
// attributes, in which opsets. A node that is something else is refused before anyone reads it, so
// that nothing it asks for is passed over. Room-private; the table is in schema.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {

bool is_float(OnnxType type);
bool is_integer(OnnxType type);  // booleans are none

// The type of what `node` gives, whose inputs are of these types (undefined: left out). Errors, all
// without a place: an operator that is not in the table, or not in the opset; inputs, outputs and
// attributes that the operator does not have, or of another type.
Result<OnnxType> check_node(const OnnxNode& node, int64_t opset,
                            const std::vector<OnnxType>& inputs);
// Whether the table has the operator at all.
bool knows_operator(std::string_view op);

}  // namespace loom::core
