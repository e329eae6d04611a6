// Whether a multiply-add rounds once. Relaxed SIMD lets each WebAssembly host choose, so this check
// runs before any kernel relies on it (docs/numerics.md, rule 2).
#pragma once

#include "base/numbers/fma.hpp"

namespace loom::core {

// `madd(a, b, c)` gives a * b + c in f32 as this host computes it. The test sums cancel, end
// halfway between two numbers, or are subnormal, so they differ if the product, or the f64 sum, is
// rounded first.
template <class Madd>
bool rounds_once(Madd madd) {
  const float triples[][3] = {
      {0x1.001p0f, 0x1.001p0f, -0x1.002p0f},    {0x1.fffffep0f, 0x1.fffffep0f, -0x1.fffffcp1f},
      {0x1.000002p0f, 0x1.000002p0f, 0x1p-25f}, {0x1.00001p-12f, 0x1.ffffep-13f, 0x1.000002p0f},
      {0x1.8p-70f, 0x1.8p-70f, 0x1p-140f},      {-0x1.abcdeep20f, 0x1.123456p-20f, 0x1.cccccep0f}};
  for (const auto& t : triples) {
    // Volatile, because the compiler may fold constants with a different rounding.
    volatile float a = t[0], b = t[1], c = t[2];
    if (madd(a, b, c) != fused_exact(t[0], t[1], t[2])) return false;
  }
  return true;
}

}  // namespace loom::core
