// The reference backend: every op written literally from docs/numerics.md, scalar and slow. It is
// the oracle: other backends start as a copy of this table and must keep its bits (CPU) or its
// bound (device).
#pragma once

#include <string_view>

#include "ops/ops.hpp"

namespace loom::core {

// Rows that training alone records. A build for inference alone leaves them null in every table,
// and the recorder refuses them; what forward passes share with gradients (conv_dx, matmul_dx,
// reduce_cols) is not among them.
#ifdef LOOM_WITHOUT_TRAINING
constexpr bool kTrains = false;
#else
constexpr bool kTrains = true;
#endif
constexpr bool of_training(std::string_view op) {
  constexpr std::string_view rows[] = {
      "scatter_add_rows", "unary_dx", "gated_dx",  "norm_dx", "softmax_dx",
      "entmax_dx",        "conv_dw",  "attend_dx", "pool_dx", "lstm_cell_dx",
      "gru_cell_dx",      "loss",     "optimize"};
  for (const std::string_view row : rows) {
    if (op == row) return true;
  }
  return false;
}

const Ops& reference_ops();
// The same bodies with every activation, plain parameter and sum in f64: the oracle of gradients.
// Without quantized activations and the KV cache, which are f32 by definition.
const Ops& reference_ops_f64();

}  // namespace loom::core
