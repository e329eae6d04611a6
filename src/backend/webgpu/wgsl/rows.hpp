// The split of a row among invocations, for row-wise kernels.
#pragma once

#include <cstdint>

namespace loom::core::webgpu {

// Invocations per row: few for short rows, which are numerous, many for long ones. There are only
// two values, because each is a pipeline of its own.
constexpr int row_lanes(int64_t rows, int64_t cols) {
  const bool is_small = cols <= 128 || (cols <= 1024 && rows >= 512);
  return is_small ? 32 : 256;
}

// Few long rows do not fill a GPU. They are cut into parts of kRowPart values, with a workgroup
// each; a second dispatch joins the results. 1 means that rows stay whole.
constexpr int64_t kRowPart = 2048;
constexpr int64_t row_parts(int64_t rows, int64_t cols) {
  return cols > 2 * kRowPart && rows < 128 ? (cols + kRowPart - 1) / kRowPart : 1;
}

// The same if a row must have the bits that it has alone (Frame::rows_alone).
constexpr int row_lanes(bool alone, int64_t rows, int64_t cols) {
  return row_lanes(alone ? 1 : rows, cols);
}

}  // namespace loom::core::webgpu
