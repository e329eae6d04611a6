// Rounding, private to the room: nearest integer and nearest small float, ties to even, using only
// IEEE additions. No libm, no table. Valid under the default rounding mode, which the library never
// changes. Source: IEEE 754-2019 4.3.1; for one-digit formats (E3M0) its tie rule is "larger
// magnitude".
#pragma once

#include <cstdint>

#include "base/numbers/bits.hpp"

namespace loom::core {

// Nearest integer of |x| < 2^51. Adding 1.5 * 2^52 leaves no bits below the unit.
inline double round_small(double x) {
  return (x + 0x1.8p52) - 0x1.8p52;
}

// Nearest integer of any x; infinities and NaN pass through.
inline double round_half_even(double x) {
  if (!(x > -0x1p52 && x < 0x1p52)) return x;  // no fraction bits at this size
  return x < 0 ? (x - 0x1p52) + 0x1p52 : (x + 0x1p52) - 0x1p52;
}

// By bits, so that -0 becomes 0.
inline double abs_of(double x) {
  return bit_cast<double>(bit_cast<uint64_t>(x) << 1 >> 1);
}
inline bool is_nan(double x) {
  return x != x;
}
inline bool sign_bit(double x) {
  return (bit_cast<uint64_t>(x) >> 63) != 0;
}

// 2^e for -1022 <= e <= 1023.
inline double pow2(int e) {
  return bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52);
}

// Exponent of a finite a >= 0; at most -1023 for zero and subnormals.
inline int exponent_of(double a) {
  return static_cast<int>(bit_cast<uint64_t>(a) >> 52) - 1023;
}

// Exponent and mantissa field of the nearest float with kMant mantissa bits and smallest normal
// exponent kMinExp. `a` is finite, >= 0 and below 2^900. A carry runs into the exponent by itself.
template <int kMant, int kMinExp>
inline uint32_t round_magnitude(double a) {
  const int e = exponent_of(a) > kMinExp ? exponent_of(a) : kMinExp;
  const auto digits = static_cast<uint32_t>(round_small(a * pow2(kMant - e)));
  return (static_cast<uint32_t>(e - kMinExp) << kMant) + digits;
}

// The inverse, for fields of finite numbers.
template <int kMant, int kMinExp>
inline double magnitude_of(uint32_t field) {
  const int e = static_cast<int>(field >> kMant);
  const uint32_t fraction = field & ((1u << kMant) - 1);
  const uint32_t digits = e == 0 ? fraction : fraction | (1u << kMant);
  return static_cast<double>(digits) * pow2((e == 0 ? 1 : e) - 1 + kMinExp - kMant);
}

}  // namespace loom::core
