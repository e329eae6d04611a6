// binary16 and bfloat16: IEEE 754 conversions, nearest even, subnormals kept, overflow to infinity,
// quiet NaN with the top payload bits. Integer arithmetic on bit patterns. The one float addition
// (f16 subnormals) is exact except for the intended rounding.
#include "base/numbers/bits.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core {

uint16_t f16_from_f32(float x) {
  const uint32_t u = f32_bits(x);
  const uint32_t sign = (u >> 16) & 0x8000u;
  uint32_t a = u & 0x7fffffffu;
  if (a >= 0x477ff000u) {  // 65520, the midpoint above the largest finite number
    const uint32_t nan = a > 0x7f800000u ? 0x200u | ((a >> 13) & 0x3ffu) : 0u;
    return static_cast<uint16_t>(sign | 0x7c00u | nan);
  }
  if (a < 0x38800000u) {  // below 2^-14: 0.5f has the ulp 2^-24 of f16 subnormals
    const uint32_t rounded = f32_bits(f32_from_bits(a) + 0.5f) - f32_bits(0.5f);
    return static_cast<uint16_t>(sign | rounded);
  }
  a += 0xfffu + ((a >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((a - (112u << 23)) >> 13));
}

float f32_from_f16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t a = h & 0x7fffu;
  if (a >= 0x7c00u) return f32_from_bits(sign | 0x7f800000u | ((a & 0x3ffu) << 13));
  if (a >= 0x400u) return f32_from_bits(sign | ((a << 13) + (112u << 23)));
  return f32_from_bits(sign | f32_bits(static_cast<float>(a) * 0x1p-24f));
}

uint16_t bf16_from_f32(float x) {
  uint32_t u = f32_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  u += 0x7fffu + ((u >> 16) & 1u);
  return static_cast<uint16_t>(u >> 16);
}

float f32_from_bf16(uint16_t h) {
  return f32_from_bits(static_cast<uint32_t>(h) << 16);
}

}  // namespace loom::core
