// How kernels that work row by row share out a row.
#pragma once

#include <cstdint>

namespace loom::core::webgpu {

// Invocations per row: a few for short rows, which come in numbers, many for long ones. Two values
// only: each is a pipeline of its own.
constexpr int row_lanes(int64_t rows, int64_t cols) {
  const bool few = cols <= 128 || (cols <= 1024 && rows >= 512);
  return few ? 32 : 256;
}

// Few long rows do not fill a GPU: they are cut into parts of kRowPart values with a workgroup
// each, whose results a second dispatch joins. 1: rows stay whole.
constexpr int64_t kRowPart = 2048;
constexpr int64_t row_parts(int64_t rows, int64_t cols) {
  return cols > 2 * kRowPart && rows < 128 ? (cols + kRowPart - 1) / kRowPart : 1;
}

// The same where a row has the bits that it has among any other number of rows (Frame::rows_alone).
constexpr int row_lanes(bool alone, int64_t rows, int64_t cols) {
  return row_lanes(alone ? 1 : rows, cols);
}

}  // namespace loom::core::webgpu
