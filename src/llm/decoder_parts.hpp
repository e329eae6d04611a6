// Checkpoint tensors that hold several parameters of a decoder, concatenated by rows.
#pragma once

#include <string>

#include "llm/decoder_config.hpp"
#include "llm/decoder_role.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

// A tensor of a checkpoint, or some of its rows.
struct TensorPart {
  std::string name = {};  // "model.layers.3.mlp.up_proj.weight"
  int64_t first_row = 0;  // first row of the parameter
  int64_t rows = 0;       // of the whole tensor
  // Rows of the parameter are in runs of `run`, `step` rows apart; 0 means one run.
  int64_t run = 0, step = 0;
  bool transposed = false;  // the tensor is [cols, rows], or [stacked, cols, rows / stacked]
  // > 0: the first `rotated` of each `head` rows have the two halves of rotary pairs side by side.
  // `unrotated` other rows are before those.
  int64_t head = 0, rotated = 0, unrotated = 0;
  // Above 0: the parameter is this many tensors of `rows` rows. The number of a tensor replaces
  // kNumberMark in the name.
  int64_t tensors = 0;
  // Above 0: the tensor has a first axis of this extent, which divides `rows`.
  int64_t stacked = 0;
  // Above 0: the first two axes of a stacked and transposed tensor are one. Each matrix has so many
  // columns there; the parameter has the first of them.
  int64_t columns = 0;

  int64_t split = 0;        // > 0: the vector is stored as [rows / split, split]
  bool split_axis = false;  // or as [rows / split, 1, split]

  // Whether rows of the parameter are not next to each other.
  bool scattered() const { return run > 0 || head > 0; }
  // The index of a value in a transposed tensor, from its row and column.
  int64_t transposed_index(int64_t row, int64_t col, int64_t cols) const {
    const int64_t extent = stacked > 0 ? rows / stacked : rows;
    return (row / extent * (columns > 0 ? columns : cols) + col) * extent + row % extent;
  }
  // The tensor row with row `row` of the parameter.
  int64_t row(int64_t row) const {
    if (head > 0) row += paired(row % head) - row % head;
    return first_row + (run == 0 ? row : row / run * step + row % run);
  }

 private:
  int64_t paired(int64_t row) const {
    const int64_t half = rotated / 2, at = row - unrotated;
    if (at < 0 || at >= rotated) return row;
    return unrotated + (at < half ? 2 * at : 2 * (at - half) + 1);
  }
};

inline constexpr char kNumberMark = '#';
// The name of tensor `number`.
std::string numbered_name(const TensorPart& part, int64_t number);
// The shape of one tensor, from the shape of the parameter.
Shape tensor_shape(const TensorPart& part, const Shape& param);

// Rows [first, first + those of the parameter) of a tensor with several parameters: q, k, v in
// order, or gate and up; matrices and biases alike. Empty if the role has its own tensor.
struct FusedRows {
  int64_t first = 0, total = 0;
};
FusedRows fused_rows(DecoderRole role, const DecoderConfig& config);

}  // namespace loom::core
