// Codecs: the value of a stored code of a type, and the code of a value. Element codecs do not use
// scales; the scale rules and simulate() combine the two. The formulas come from the OCP OFP8 and
// MX specifications, IEEE 754 and GGUF.
#pragma once

#include <cstdint>

#include "dtype/dtype.hpp"

namespace loom::core {

// A code is the stored code of R16: level + code_bias for narrow signed types, two's complement
// from int16 up. It is the nearest code of v, ties to even, saturating. Exceptions: IEEE types
// overflow to infinity, as in IEEE 754; 64-bit integers hold 53 bits, so that a code is exact in
// f64; q4_0, q5_0 and q8_0 round as GGUF does. NaN gives the type's NaN, or the code of 0 if there
// is none.
uint64_t encode_value(DType dtype, double v);
// The value of a code (its low `bits` bits), unscaled. For uint types the code itself.
double decode_value(DType dtype, uint64_t code);

// value = (decode(code) - zero) * step + offset
struct Scale {
  double step = 1.0;
  double zero = 0.0;
  // GGUF blocks of 32 encode (x - origin) * inv, both computed before d and m are rounded to f16. 0
  // means (x - offset) / step.
  double inv = 0.0;
  double offset = 0.0, origin = 0.0;
};
// The scale of spec/core.md 4.2 for n values `stride` apart. Block formats: the values of one
// block, the only one in its super-block; nvfp4: the whole tensor. Types without scale: {1, 0}. All
// zeros: step 0. Infinities and NaN are ignored.
Scale choose_scale(DType dtype, const float* values, int64_t n, int64_t stride = 1);

// decode(encode(v)) under a scale: the value of v in this type. Equals packing and unpacking bit
// for bit.
double simulate(DType dtype, double v, const Scale& scale);

uint16_t f16_from_f32(float x);
float f32_from_f16(uint16_t h);
uint16_t bf16_from_f32(float x);
float f32_from_bf16(uint16_t h);
uint8_t e4m3_from_f32(float x, bool saturate = true);
float f32_from_e4m3(uint8_t code);
uint8_t e5m2_from_f32(float x, bool saturate = true);
float f32_from_e5m2(uint8_t code);
uint8_t e2m1_from_f32(float x);
float f32_from_e2m1(uint8_t code);
float f32_from_e8m0(uint8_t code);  // 2^(code-127), 0xFF = NaN

// GGUF-exact blocks of 32: q4_0 (18 bytes: f16 d, 16 nibble pairs j | j+16), q8_0 (34 bytes: f16 d,
// 32 int8).
void encode_block_q4_0(const float* x, std::byte* block);
void encode_block_q8_0(const float* x, std::byte* block);
void decode_block_q4_0(const std::byte* block, float* x);
void decode_block_q8_0(const std::byte* block, float* x);

}  // namespace loom::core
