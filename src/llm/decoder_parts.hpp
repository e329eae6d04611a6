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
};

// Rows [first, first + those of the parameter) of a tensor that holds several: q, k, v one below
// the other, or gate and up. No rows where the role has a tensor of its own.
struct FusedRows {
  int64_t first = 0, total = 0;
};
FusedRows fused_rows(DecoderRole role, const DecoderConfig& config);

}  // namespace loom::core
