// Fused multiply-add, a * b + c with one rounding (IEEE 754 fusedMultiplyAdd): the step of every
// chain of products (docs/numerics.md, rule 2). fused() is the processor's instruction if there is
// one. Otherwise it is fused_exact(), which gives the same bits on any IEEE machine and is slower.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/inline.hpp"
#include "base/numbers/x86_features.hpp"

namespace loom::core {

// Every bit set if a comparison holds, for a number or for each element of a vector.
template <class I, class Condition>
LOOM_INLINE I all_bits(Condition holds) {
  if constexpr (std::is_same_v<Condition, bool>) {
    return -I{holds};
  } else {
    return (I)holds;
  }
}

// The sum of p and c rounded to odd: if it is inexact, the neighbour whose last bit is 1. Such a
// sum of 53 bits may be rounded once more, to 51 bits or fewer, as if it were exact (S. Boldo and
// G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008). D is double or a vector of
// doubles, I the integers of the same width.
template <class D, class I>
LOOM_INLINE D add_to_odd(D p, D c) {
  const D sum = p + c;
  // The rounding error of the sum, exactly (D. Knuth's TwoSum); NaN where the sum is not finite.
  const D part = sum - p;
  const D error = (p - (sum - part)) + (c - part);
  I bits, error_bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  std::memcpy(&error_bits, &error, sizeof(error_bits));
  const I inexact = all_bits<I>(error > 0.0) | all_bits<I>(error < 0.0);
  const I even = (bits & 1) - 1;
  const I away = ((bits ^ error_bits) >> 63) | 1;  // 1, or -1 where the error points to zero
  bits += inexact & even & away;
  D odd;
  std::memcpy(&odd, &bits, sizeof(odd));
  return odd;
}

// Through f64: the product of two f32 is exact there. Its sum with c, rounded to odd, has more bits
// than the rounding to f32 needs, even for subnormal results.
LOOM_INLINE float fused_exact(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  return static_cast<float>(add_to_odd<double, int64_t>(product, static_cast<double>(c)));
}

// In integers of 128 bits; much slower than the instruction.
double fused_exact(double a, double b, double c);

// LOOM_EMULATE_FMA builds for a processor without the instruction; a build of the hash matrix uses
// it.
#if !defined(LOOM_EMULATE_FMA) && (defined(__FMA__) || defined(__aarch64__))
LOOM_INLINE float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
LOOM_INLINE double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
#elif !defined(LOOM_EMULATE_FMA) && defined(__x86_64__)
// Code for any x86-64 processor tests the feature at run time: a load and a branch.
LOOM_INLINE float fused(float a, float b, float c) {
  if (!x86_runs_fma) return fused_exact(a, b, c);
  __asm__("vfmadd231ss %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
  return c;
}
LOOM_INLINE double fused(double a, double b, double c) {
  if (!x86_runs_fma) return fused_exact(a, b, c);
  __asm__("vfmadd231sd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
  return c;
}
#else
LOOM_INLINE float fused(float a, float b, float c) {
  return fused_exact(a, b, c);
}
LOOM_INLINE double fused(double a, double b, double c) {
  return fused_exact(a, b, c);
}
#endif

}  // namespace loom::core
