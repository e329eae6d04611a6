// Families of operators that only the interpreter has. Those of every build:
// onnx/operators/operator.hpp.
#pragma once

#include "onnx/interpreter/body.hpp"
#include "onnx/operators/elementwise.hpp"

namespace loom::core::evaluate {

std::span<const Operator> order_operators();
std::span<const Operator> product_operators();
std::span<const Operator> einsum_operators();
std::span<const Operator> conv_operators();
std::span<const Operator> pool_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> image_operators();
std::span<const Operator> box_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> control_operators();
std::span<const Operator> sequence_operators();
std::span<const Operator> quantized_operators();
std::span<const Operator> ml_operators();
std::span<const Operator> tree_operators();
std::span<const Operator> svm_operators();
std::span<const Operator> rearrange_operators();
std::span<const Operator> axis_operators();
std::span<const Operator> quantize_operators();

}  // namespace loom::core::evaluate
