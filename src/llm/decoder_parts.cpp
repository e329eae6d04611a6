#include "llm/decoder_parts.hpp"

namespace loom::core {

FusedRows fused_rows(DecoderRole role, const DecoderConfig& config) {
  using enum DecoderRole;
  const int64_t rows_q = config.num_heads * config.head_dim;
  const int64_t rows_kv = config.num_kv_heads * config.head_dim;
  if (role == q) return {0, rows_q + 2 * rows_kv};
  if (role == k) return {rows_q, rows_q + 2 * rows_kv};
  if (role == v) return {rows_q + rows_kv, rows_q + 2 * rows_kv};
  if (role == gate) return {0, 2 * config.intermediate_size};
  if (role == up) return {config.intermediate_size, 2 * config.intermediate_size};
  return {};
}

}  // namespace loom::core
