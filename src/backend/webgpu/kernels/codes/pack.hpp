// The WGSL of pack: shared functions, and the kernels. pack.cpp describes their parameters.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// IEEE 754 double precision on pairs of words, low word first: f64_of, f64_add, f64_multiply,
// f64_divide, f64_less, f64_round, f64_bits.
extern const std::string_view kFloat64;
// Ratio, ratio_of, and code_of, the code of a value. After kFloat64.
extern const std::string_view kCodes;
// The range of values, joined over a workgroup. After kFloat64.
extern const std::string_view kRange;
// The word that an invocation makes, and the largest value of a block.
extern const std::string_view kWords, kBlockScale;

extern const Kernel kPartial, kScales;
extern const Kernel kBlockScales, kWideCodes, kWideCodes64, kGroupCodes, kClear, kMark;

}  // namespace loom::core::webgpu
