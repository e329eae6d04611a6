// The table of the operators that only the interpreter has, by name. See body.hpp.
#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"

namespace loom::core::evaluate {

std::span<const std::span<const Operator>> operator_families() {
  static const std::span<const Operator> kFamilies[] = {
      order_operators(),     product_operators(),   einsum_operators(),
      conv_operators(),      pool_operators(),      norm_operators(),
      recurrent_operators(), attention_operators(), resize_operators(),
      image_operators(),     box_operators(),       loss_operators(),
      quantized_operators(), signal_operators(),    control_operators(),
      sequence_operators(),  ml_operators(),        tree_operators(),
      svm_operators(),       fused_operators(),     fused_product_operators(),
      blockwise_operators(), linear_operators(),    fused_attention_operators(),
      rearrange_operators(), axis_operators(),      quantize_operators(),
  };
  return kFamilies;
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
  if (const Operator* common = find_common_operator(domain, name)) return common;
  for (const std::span<const Operator> family : operator_families()) {
    for (const Operator& o : family) {
      if (o.name == name && o.domain == domain) return &o;
    }
  }
  return nullptr;
}

}  // namespace loom::core::evaluate
