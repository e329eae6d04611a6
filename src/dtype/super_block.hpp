// Super-blocks, private to the room: 256 values whose blocks of 16 or 32 have small integer scales
// (and small integers that are taken off), which share one f16 each. How values become one, and
// where its fields lie in a group of R16. The fields are also what a block of 32 of GGUF holds.
#pragma once

#include "dtype/r16.hpp"
#include "dtype/scale.hpp"

namespace loom::core {

constexpr int kMostBlockValues = 256;

// A super-block, or a block of 32 of a type that has none.
struct BlockFields {
  uint32_t scale = 0;  // as stored: the f16 or the byte
  uint32_t least = 0;  // f16: the second one of a super-block, or what is added to a block of 32
  int8_t small_scales[16] = {};
  uint8_t small_leasts[16] = {};
  uint8_t codes[kMostBlockValues] = {};  // stored codes
};

// Values that the fields above describe for a type.
inline int block_values(const DTypeInfo& info) {
  return info.super_block > 0 ? info.super_block : info.block;
}

// Of x[0, n), n <= 256; what is missing counts as code 0 where blocks are shifted(), and as 0 else.
void quantize_super_block(const DTypeInfo& info, const float* x, int n, BlockFields& out);

// What the fields say of block `block` of a super-block.
Scale super_scale(const DTypeInfo& info, const BlockFields& fields, int block);

// The small integers of a block of one lane; `at` is the lane's byte in the block's record.
R16Small get_small(const DTypeInfo& info, const std::byte* at);

// Block (or super-block) `index` of lane `lane` of a group; blocks of 32 k beyond the matrix are
// left out.
void put_fields(const R16& g, const BlockFields& fields, int64_t lane, int64_t index,
                std::byte* group);
void get_fields(const R16& g, const std::byte* group, int64_t lane, int64_t index,
                BlockFields& fields);

}  // namespace loom::core
