// Element encoders, private to the room, inline so that encode_value, simulate and r16_pack run the
// same arithmetic. A code here is the stored code of R16: level + bias for narrow signed types,
// two's complement for int16 and wider. Inputs are already divided by the step.
#pragma once

#include <cstdint>

#include "dtype/codecs/codec.hpp"
#include "dtype/codecs/rounding.hpp"

namespace loom::core {

// Levels of e2m1 in halves and e3m0 in quarters, by code. The -0 code is level 0.
inline constexpr int8_t kLevelsE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr int8_t kLevelsE3M0[16] = {0, 1,  2,  4,  8,  16,  32,  64,
                                           0, -1, -2, -4, -8, -16, -32, -64};

// NormalFloat4 of QLoRA (Dettmers et al. 2023), the values of bitsandbytes.
inline constexpr float kLevelsNF4[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

// The integer range of a type. 64-bit types hold 53 bits: a code is exact in f64, the compute type.
struct IntRange {
  double lo = 0, hi = 0;
};
inline IntRange int_range(const DTypeInfo& info) {
  const int bits = info.bits < 54 ? info.bits : 54;
  if (info.kind == NumberKind::ternary) return {-1, 1};
  if (info.kind == NumberKind::uint) return {0, pow2(info.bits < 53 ? info.bits : 53) - 1};
  const double half = pow2(bits - 1);
  return {info.bits < 54 ? -half : 1 - half, half - 1};
}

// Dividing by a step of 0 (a row of zeros) would make NaN of 0/0. Every code then decodes to 0
// anyway.
inline double divisor(double step) {
  return step == 0 ? 1.0 : step;
}

// Rounded q + zero, clamped. It rounds before adding, so 0 maps exactly to the zero point (as in
// ONNX).
inline double integer_code(double q, double zero, IntRange range) {
  const double lo = range.lo - zero, hi = range.hi - zero;
  q = is_nan(q) ? 0 : q;
  q = q < lo ? lo : q;
  q = q > hi ? hi : q;
  return round_half_even(q) + zero;
}

// The same for ranges below 2^51, without branches.
inline double small_integer_code(double q, double zero, IntRange range) {
  const double lo = range.lo - zero, hi = range.hi - zero;
  q = is_nan(q) ? 0 : q;
  q = q < lo ? lo : q;
  q = q > hi ? hi : q;
  return round_small(q) + zero;
}

// GGUF rounds q4_0 and q5_0 half up in f32, and q8_0 half away from zero.
template <int kBits>
inline uint8_t gguf_code(float q) {
  constexpr float kBias = 1 << (kBits - 1), kTop = (1 << kBits) - 1;
  float t = q + (kBias + 0.5f);
  t = t == t ? t : kBias;
  t = t < 0.0f ? 0.0f : t;
  t = t > kTop ? kTop : t;
  return static_cast<uint8_t>(static_cast<int32_t>(t));
}
// q4_1 and q5_1 count from the smallest value. A NaN counts as 0.
inline uint8_t gguf_code_above(float x, float origin, float inv, float top) {
  x = x == x ? x : 0.0f;
  float t = (x - origin) * inv + 0.5f;
  t = t == t ? t : 0.0f;
  t = t < 0.0f ? 0.0f : t;
  t = t > top ? top : t;
  return static_cast<uint8_t>(static_cast<int32_t>(t));
}
inline uint8_t gguf_code_q8(float q) {
  float t = q == q ? q : 0.0f;
  t = t < -128.0f ? -128.0f : t;
  t = t > 127.0f ? 127.0f : t;
  const auto whole = static_cast<int32_t>(t);
  const float rest = t - static_cast<float>(whole);
  return static_cast<uint8_t>(whole + (rest >= 0.5f) - (rest <= -0.5f) + 128);
}

// Codes of blocks whose scale has an offset or is a small integer. A NaN counts as 0.
inline uint8_t block_code(const DTypeInfo& info, double x, const Scale& s) {
  x = is_nan(x) ? 0 : x;
  const double level = small_integer_code((x - s.offset) / divisor(s.step), 0.0, int_range(info));
  return static_cast<uint8_t>(static_cast<int32_t>(level) + info.code_bias);
}

inline uint8_t binary_code(double q) {
  return q < 0 ? 0 : 1;
}

// Sign and magnitude, saturating at kMax; NaN has no code and becomes 0.
template <int kMant, int kMinExp>
inline uint8_t fp4_code(double q, double max) {
  if (is_nan(q)) return 0;
  double a = abs_of(q);
  a = a > max ? max : a;
  return static_cast<uint8_t>((sign_bit(q) ? 8u : 0u) | round_magnitude<kMant, kMinExp>(a));
}
inline uint8_t e2m1_code(double q) {
  return fp4_code<1, 0>(q, 6.0);
}
inline uint8_t e3m0_code(double q) {
  return fp4_code<0, -2>(q, 16.0);
}

// Midpoints between neighbouring NF4 values, exact in f64.
struct MiddlesNF4 {
  double at[15] = {};
  constexpr MiddlesNF4() {
    for (int i = 0; i < 15; ++i) {
      at[i] = (static_cast<double>(kLevelsNF4[i]) + static_cast<double>(kLevelsNF4[i + 1])) * 0.5;
    }
  }
};
inline constexpr MiddlesNF4 kMiddlesNF4;

// Nearest value, ties to the even code, by binary search.
inline uint8_t nf4_code(double q) {
  if (is_nan(q)) return 7;
  unsigned code = 0;
  for (unsigned half = 8; half > 0; half /= 2) {
    const unsigned below = code + half - 1;
    const double middle = kMiddlesNF4.at[below];
    const bool above = q > middle || (q == middle && (below & 1) != 0);
    code += above ? half : 0;
  }
  return static_cast<uint8_t>(code);
}

// Saturating OCP conversions of a scaled value; NaN stays NaN.
uint8_t e4m3_code(double q, bool saturate);
uint8_t e5m2_code(double q, bool saturate);

// The level of a stored code of an integer-path type, before subtracting the zero point.
inline int32_t level_of(const DTypeInfo& info, uint32_t code) {
  switch (info.levels) {
    case Levels::twice: return static_cast<int32_t>(2 * code) - 1;
    case Levels::e2m1: return kLevelsE2M1[code & 15];
    case Levels::e3m0: return kLevelsE3M0[code & 15];
    default: return static_cast<int32_t>(code) - info.code_bias;
  }
}

}  // namespace loom::core
