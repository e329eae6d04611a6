#include "llm/decoder_parts.hpp"

#include "base/text.hpp"

namespace loom::core {

std::string numbered_name(const TensorPart& part, int64_t number) {
  const size_t at = part.tensors > 0 ? part.name.find(kNumberMark) : std::string::npos;
  if (at == std::string::npos) return part.name;
  return cat(part.name.substr(0, at), number, part.name.substr(at + 1));
}

Shape tensor_shape(const TensorPart& part, const Shape& param) {
  if (param.rank() < 2 && part.split > 0) {
    return part.split_axis ? Shape{part.rows / part.split, 1, part.split}
                           : Shape{part.rows / part.split, part.split};
  }
  if (param.rank() < 2) return Shape{part.rows};
  const int64_t cols = param[1];
  const int64_t rows = part.stacked > 0 ? part.rows / part.stacked : part.rows;
  if (part.columns > 0) return Shape{part.stacked * part.columns, rows};
  if (part.stacked > 0)
    return part.transposed ? Shape{part.stacked, cols, rows} : Shape{part.stacked, rows, cols};
  return part.transposed ? Shape{cols, part.rows} : Shape{part.rows, cols};
}

FusedRows fused_rows(DecoderRole role, const DecoderConfig& config) {
  using enum DecoderRole;
  const int64_t rows_q = config.num_heads * config.head_dim;
  const int64_t rows_kv = config.num_kv_heads * config.head_dim;
  if (role == q || role == q_bias) return {0, rows_q + 2 * rows_kv};
  if (role == k || role == k_bias) return {rows_q, rows_q + 2 * rows_kv};
  if (role == v || role == v_bias) return {rows_q + rows_kv, rows_q + 2 * rows_kv};
  const int64_t shared = config.experts.shared_inner;
  if (role == shared_gate) return {0, 2 * shared};
  if (role == shared_up) return {shared, 2 * shared};
  if (!config.gated_mlp) return {};
  if (role == gate || role == gate_bias) return {0, 2 * config.intermediate_size};
  if (role == up || role == up_bias)
    return {config.intermediate_size, 2 * config.intermediate_size};
  return {};
}

}  // namespace loom::core
