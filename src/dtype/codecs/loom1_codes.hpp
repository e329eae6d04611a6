// The codes in files of the original project, decoded as that project does: own tables for the
// small floats (unlike the standards), no zero points, one scale per tensor. "Layout 1": fields
// smaller than a byte begin at its high end; larger ones are little-endian. For readers of old
// files only; nothing is written in these codes.
#pragma once

#include <cstdint>
#include <span>

#include "dtype/dtype.hpp"

namespace loom::core {

// Whether this is one of the 21 types of the original.
bool loom1_has(DType dtype);
// Whether a value is its code times the scale. False for the IEEE types.
bool loom1_scaled(DType dtype);
// Bytes of `count` codes in layout 1; count is below 2^56.
uint64_t loom1_bytes(DType dtype, uint64_t count);
// The value of a code, unscaled. NaN for codes that are never written (fp4 6 and 7, ternary -2).
double loom1_value(DType dtype, uint64_t code);
// out[count] from layout 1; `bytes` has loom1_bytes(dtype, count) of them.
void loom1_unpack(DType dtype, std::span<const std::byte> bytes, double scale,
                  std::span<float> out);
// The words of BitNet matrices and of Q4_0: field i of `bits` bits, low end first, in 32-bit
// little-endian words.
uint32_t loom1_word_field(const std::byte* words, int bits, uint64_t i);

}  // namespace loom::core
