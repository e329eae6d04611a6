// Whether a multiply-add rounds once. Relaxed SIMD lets each host of WebAssembly choose, so the one
// here is tried before any kernel relies on it (docs/numerics.md, rule 2).
#pragma once

#include "base/fma.hpp"

namespace loom::core {

// `madd(a, b, c)` gives a * b + c of f32 as this host computes it. The sums cancel, end halfway
// between two numbers, are subnormal, or come out otherwise where the product, or the sum in f64,
// was rounded first.
template <class Madd>
bool rounds_once(Madd madd) {
  const float triples[][3] = {
      {0x1.001p0f, 0x1.001p0f, -0x1.002p0f},    {0x1.fffffep0f, 0x1.fffffep0f, -0x1.fffffcp1f},
      {0x1.000002p0f, 0x1.000002p0f, 0x1p-25f}, {0x1.00001p-12f, 0x1.ffffep-13f, 0x1.000002p0f},
      {0x1.8p-70f, 0x1.8p-70f, 0x1p-140f},      {-0x1.abcdeep20f, 0x1.123456p-20f, 0x1.cccccep0f}};
  for (const auto& t : triples) {
    // Hidden from the compiler, which would fold constants its own way.
    volatile float a = t[0], b = t[1], c = t[2];
    if (madd(a, b, c) != fused_exact(t[0], t[1], t[2])) return false;
  }
  return true;
}

}  // namespace loom::core
