// Pieces of WGSL that the kernels of pack share.
#pragma once

#include <string_view>

namespace loom::webgpu {

// IEEE 754 double precision on pairs of words, low word first: f64_of, f64_add, f64_multiply,
// f64_divide, f64_less, f64_round, f64_bits.
extern const std::string_view kFloat64;
// Ratio, ratio_of and what a value becomes: code_of.
extern const std::string_view kCodes;

}  // namespace loom::webgpu
