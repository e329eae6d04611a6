// Converts rows of GGUF blocks to and from R16, for the types that both have (q4_0, q4_1, q5_0,
// q5_1, q8_0, mxfp4 and the K types). Codes and scale bits are moved without rounding, so a round
// trip gives the same row.
#pragma once

#include "dtype/r16/r16.hpp"

namespace loom::core {

// Bytes of one GGUF block; 0 if GGUF and R16 do not share the type.
int64_t gguf_block_bytes(DType dtype);
// Values of one GGUF block of a type above: 32 or 256.
int64_t gguf_block_values(DType dtype);

// Writes row `row` of the matrix g (of a type above, cols a multiple of its block's values) from
// its blocks. Bytes of other rows are unchanged, except those of absent rows, which the last row
// sets as packing does. False: a block of mxfp4 has the scale byte 255, which is NaN in R16 and a
// number in GGUF.
[[nodiscard]] bool r16_put_blocks(const R16& g, const std::byte* blocks, int64_t row,
                                  std::byte* matrix);
// Reads row `row` into its blocks. False: a small scale does not fit its bits in GGUF. This never
// happens for matrices that were packed or read from GGUF.
[[nodiscard]] bool r16_get_blocks(const R16& g, const std::byte* matrix, int64_t row,
                                  std::byte* blocks);

}  // namespace loom::core
