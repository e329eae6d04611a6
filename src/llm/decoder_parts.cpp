#include "llm/decoder_parts.hpp"

namespace loom::core {

FusedRows fused_rows(DecoderRole role, const DecoderConfig& config) {
  using enum DecoderRole;
  const int64_t rows_q = config.num_heads * config.head_dim;
  const int64_t rows_kv = config.num_kv_heads * config.head_dim;
  if (role == q || role == q_bias) return {0, rows_q + 2 * rows_kv};
  if (role == k || role == k_bias) return {rows_q, rows_q + 2 * rows_kv};
  if (role == v || role == v_bias) return {rows_q + rows_kv, rows_q + 2 * rows_kv};
  if (!config.gated_mlp) return {};
  if (role == gate || role == gate_bias) return {0, 2 * config.intermediate_size};
  if (role == up || role == up_bias)
    return {config.intermediate_size, 2 * config.intermediate_size};
  return {};
}

}  // namespace loom::core
