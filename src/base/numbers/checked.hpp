// Checked arithmetic on sizes from external input: every product and sum reports overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/inline.hpp"

namespace loom::core {

// out = a * b; false if the product does not fit.
[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}

// out = a + b; false if the sum does not fit.
[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}

LOOM_INLINE constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
LOOM_INLINE constexpr int64_t round_up(int64_t a, int64_t to) {
  return ceil_div(a, to) * to;
}

}  // namespace loom::core
