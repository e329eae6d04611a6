// Quantizing inside a kernel, as quantize_rows does it.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Binds what quantize_rows writes and adds
//   quantize_block(x, block, inside, lane)   eight invocations in a row, the first at a multiple of
//                                            eight, hold the 32 values of block number `block`,
//                                            counted over all rows; inside: store it
// which every invocation calls: it has barriers. Operands codes, scales, sums, halves.
Call& quantized(Call& call, const Q8Rows& q);
// quantize_block() alone, for kernels that keep what it makes: they define codes_put(i, word),
// scales_put(i, bits), sums_put(i, bits) and halves_put(i, bits).
extern const std::string_view kQuantizeBlock;

}  // namespace loom::core::webgpu
