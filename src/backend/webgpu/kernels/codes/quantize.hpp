// Quantizing inside a kernel, as quantize_rows does it.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Binds the outputs of quantize_rows and adds:
//   quantize_block(x, block, inside, lane)   eight adjacent invocations, the first at a multiple of
//                                            eight. Together they hold the 32 values of
//                                            block `block`, counted over all rows.
//                                            `inside` means: store it.
// Every invocation calls it, because it has barriers. Operands codes, scales, sums, halves.
Call& quantized(Call& call, const Q8Rows& q);
// quantize_block() alone, for kernels that keep its result. They define codes_put(i, word),
// scales_put(i, bits), sums_put(i, bits) and halves_put(i, bits).
extern const std::string_view kQuantizeBlock;

}  // namespace loom::core::webgpu
