// Paged KV caches: all sequences share one memory, whose positions are allocated in pages of 16. A
// row of a pass carries the pages of its sequence: places [R, 2 + N] (i32) hold 0, the position p,
// and N page numbers. Position i of the row's sequence is at position pages[i / 16] * 16 + i % 16
// of that memory. Several sequences may name one page; no row writes to a page that another row's
// sequence reads. Results do not depend on the paging.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// The pages of row r; may be null: positions are kept in their order.
inline const int32_t* pages_of(const Tensor& row_positions, int64_t r) {
  if (row_positions.empty() || row_positions.cols() == 2) return nullptr;
  return row_positions.i32() + r * row_positions.row_stride + 2;
}
inline int64_t page_of(const int32_t* pages, int64_t group) {
  return pages != nullptr ? pages[group] : group;
}
// The number of positions that a row can name.
inline int64_t positions_of(const Tensor& row_positions, int64_t capacity) {
  return row_positions.empty() || row_positions.cols() == 2 ? capacity
                                                            : (row_positions.cols() - 2) * 16;
}

}  // namespace loom::core
