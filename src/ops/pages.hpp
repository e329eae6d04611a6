// Paged KV caches: all sequences share the memory of one, whose positions are given out in pages of
// 16. A row of a pass brings the pages of its sequence along: places [R, 2 + N] (i32) hold 0, the
// position p, and N numbers of pages, and position i of the row's sequence is kept where position
// pages[i / 16] * 16 + i % 16 of that memory is. Several sequences may name one page; no row writes
// to a page that another row's sequence reads. What is computed does not depend on any of this.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// Those of row r; null: positions are kept in their order.
inline const int32_t* pages_of(const Tensor& places, int64_t r) {
  if (places.empty() || places.cols() == 2) return nullptr;
  return places.i32() + r * places.row_stride + 2;
}
inline int64_t page_of(const int32_t* pages, int64_t group) {
  return pages != nullptr ? pages[group] : group;
}
// Positions that a row can name.
inline int64_t positions_of(const Tensor& places, int64_t capacity) {
  return places.empty() || places.cols() == 2 ? capacity : (places.cols() - 2) * 16;
}

}  // namespace loom::core
