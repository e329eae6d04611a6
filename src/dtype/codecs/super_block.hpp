// Super-blocks, private to the room: 256 values whose blocks of 16 or 32 have small integer scales
// (and small integers that are subtracted), which share one f16 each. Quantizes values to a
// super-block and locates its fields in a group of R16. A GGUF block of 32 has the same fields.
#pragma once

#include "dtype/r16/r16.hpp"
#include "dtype/scale.hpp"

namespace loom::core {

constexpr int kMaxBlockValues = 256;

// A super-block, or a block of 32 of a type that has none.
struct BlockFields {
  uint32_t scale = 0;  // stored form: the f16 or the byte
  uint32_t least = 0;  // f16: the second one of a super-block, or the offset of a block of 32
  int8_t small_scales[16] = {};
  uint8_t small_leasts[16] = {};
  uint8_t codes[kMaxBlockValues] = {};  // stored codes
};

// Values that the fields above describe for a type.
inline int block_values(const DTypeInfo& info) {
  return info.super_block > 0 ? info.super_block : info.block;
}

// Quantizes x[0, n), n <= 256. Missing values count as code 0 if blocks are shifted(), else as 0.
// importance: factors of the squared errors, [n]; null means 1.
void quantize_super_block(const DTypeInfo& info, const float* x, int n, BlockFields& out,
                          const float* importance = nullptr);

// The scale of block `block` of a super-block.
Scale super_scale(const DTypeInfo& info, const BlockFields& fields, int block);

// The small integers of a block of one lane; `at` is the lane's byte in the block's record.
R16Small get_small(const DTypeInfo& info, const std::byte* at);

// Writes block (or super-block) `index` of lane `lane` of a group; blocks of 32 k past the matrix
// are skipped.
void put_fields(const R16& g, const BlockFields& fields, int64_t lane, int64_t index,
                std::byte* group);
void get_fields(const R16& g, const std::byte* group, int64_t lane, int64_t index,
                BlockFields& fields);

}  // namespace loom::core
