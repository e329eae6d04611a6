// The rows of ops.def that only training needs. Included by reference.cpp and its test.
// LOOM_WITHOUT_TRAINING is defined for the files that fill tables, so that all builds share the
// objects of the kernels (CMakeLists.txt).
#pragma once

#include <string_view>

namespace loom::core {

// The rows that only training records. An inference-only build leaves them null in every table, and
// the recorder refuses them. Rows that forward passes use too (conv_dx, matmul_dx, reduce_cols) are
// not among them.
#ifdef LOOM_WITHOUT_TRAINING
constexpr bool kTrains = false;
#else
constexpr bool kTrains = true;
#endif
constexpr bool of_training(std::string_view op) {
  constexpr std::string_view rows[] = {
      "scatter_add_rows",  "unary_dx",         "gated_dx",         "norm_dx",
      "softmax_dx",        "entmax_dx",        "conv_dw",          "attend_dx",
      "pool_dx",           "lstm_cell_dx",     "gru_cell_dx",      "loss",
      "optimize",          "expert_matmul_dx", "expert_matmul_dw", "causal_conv_dx",
      "selective_scan_dx", "selective_scan_db"};
  for (const std::string_view row : rows) {
    if (op == row) return true;
  }
  return false;
}

}  // namespace loom::core
