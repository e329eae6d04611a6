// Rows of GGUF blocks to and from the R16 layout, for the types that both have (q4_0, q8_0, mxfp4):
// codes and scale bits are moved, nothing is rounded, so a row that goes in comes out the same.
#pragma once

#include "dtype/r16.hpp"

namespace loom {

// Bytes of one GGUF block of 32 values; 0: GGUF and R16 have no such type in common.
int64_t gguf_block_bytes(DType dtype);

// Writes row `row` of the matrix g (of a type above, cols a multiple of 32) from cols / 32 blocks.
// Bytes of other rows stay, but for those of absent rows, which the last row sets as packing does.
// False: a block of mxfp4 has the scale byte 255, which is NaN in R16 and a number in GGUF.
[[nodiscard]] bool r16_put_blocks(const R16& g, const std::byte* blocks, int64_t row,
                                  std::byte* matrix);
// Reads row `row` into cols / 32 blocks.
void r16_get_blocks(const R16& g, const std::byte* matrix, int64_t row, std::byte* blocks);

}  // namespace loom
