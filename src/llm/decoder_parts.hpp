// Tensors of files that hold several parameters of a decoder, one below the other.
#pragma once

#include <string>

#include "llm/decoder_config.hpp"
#include "llm/decoder_role.hpp"

namespace loom::core {

// A tensor of a checkpoint, or some of its rows.
struct TensorPart {
  std::string name;       // "model.layers.3.mlp.up_proj.weight"
  int64_t first_row = 0;  // where the parameter begins
  int64_t rows = 0;       // of the whole tensor
  // Rows of the parameter lie in runs of `run`, each `step` rows behind the one before; 0: in one.
  int64_t run = 0, step = 0;
  bool transposed = false;  // the tensor is [cols, rows]

  // Of the tensor, the one that has row `row` of the parameter.
  int64_t row(int64_t row) const {
    return first_row + (run == 0 ? row : row / run * step + row % run);
  }
};

// Rows [first, first + those of the parameter) of a tensor that holds several: q, k, v one below
// the other, or gate and up; matrices and biases alike. No rows where the role has a tensor of its
// own.
struct FusedRows {
  int64_t first = 0, total = 0;
};
FusedRows fused_rows(DecoderRole role, const DecoderConfig& config);

}  // namespace loom::core
