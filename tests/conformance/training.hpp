// Shared parts of the conformance drivers of training ops: vectors over Rows, outputs with former
// contents, and one image of several outputs.
#pragma once

#include <initializer_list>

#include "conformance/support.hpp"

namespace loom::core::test {

// The values of one row as a vector.
inline Tensor vector_of(const Rows& row) {
  return f32_vector(row.tensor().f32(), row.tensor().cols());
}

inline Image image_of(std::initializer_list<const Rows*> outputs) {
  Image image;
  for (const Rows* rows : outputs) image.add(rows->memory());
  return image;
}

// Rows with content that an accumulating op adds to, or finds and must overwrite.
inline Rows filled(int64_t rows, int64_t cols, int64_t gap) {
  return Rows(rows, cols, gap, 4242, Values::smooth);
}

inline Rows copy_of(const Rows& x) {
  Rows copy(x.tensor().rows(), x.tensor().cols());
  for (int64_t r = 0; r < x.tensor().rows(); ++r) {
    for (int64_t c = 0; c < x.tensor().cols(); ++c) copy.at(r, c) = x.tensor().f32_row(r)[c];
  }
  return copy;
}

inline Values values_of(uint64_t variant) {
  return std::array{Values::smooth, Values::mixed, Values::wild}[variant % 3];
}

}  // namespace loom::core::test
