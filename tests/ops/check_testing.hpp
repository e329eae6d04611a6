// Helpers of the check tests: tensors over one pool of memory, and a table of statuses with their
// expected lines.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/checks.hpp"

namespace loom::core::test {

inline float pool[4096];
inline int32_t id_pool[256];

// Matrices that do not overlap; `slot` selects the location.
inline Tensor f32(int64_t rows, int64_t cols, int slot = 0) {
  return f32_matrix(pool + slot * 256, rows, cols);
}
inline Tensor f32_vec(int64_t n, int slot = 0) {
  return f32_vector(pool + slot * 256, n);
}
inline Tensor i32(int64_t rows, int64_t cols) {
  return Tensor{DType::i32, Layout::plain, Shape{rows, cols}, cols,
                reinterpret_cast<std::byte*>(id_pool)};
}
inline Tensor r16(int64_t rows, int64_t cols, DType dtype = DType::q8_0, int slot = 8) {
  return r16_tensor(r16_geometry(dtype, rows, cols),
                    reinterpret_cast<std::byte*>(pool + slot * 256));
}
inline Tensor of_dtype(Tensor t, DType dtype) {
  t.dtype = dtype;
  return t;
}
inline Tensor strided(Tensor t, int64_t row_stride) {
  t.row_stride = row_stride;
  return t;
}
inline Tensor no_memory(Tensor t) {
  t.data = nullptr;
  return t;
}
inline KvCache cache(int64_t kv_heads, int64_t width, int64_t capacity) {
  return f32_cache(pool + 2048, pool + 3072, kv_heads, width, capacity);
}
inline Q8Rows q8(int64_t rows, int64_t cols, int64_t blocks) {
  static int8_t codes[1024];
  return Q8Rows{codes, pool + 512, id_pool, id_pool + 64, rows, cols, blocks};
}

struct Case {
  Status status;
  std::string text;  // "" = accepted
};

inline void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(c.status.ok() ? "" : c.status.error().str(), c.text);
    if (c.status.ok()) continue;
    EXPECT_EQ(c.status.error().code, Code::invalid_argument);
  }
}

}  // namespace loom::core::test
