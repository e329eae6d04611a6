// The WGSL of pack: what its kernels share, and the kernels; pack.cpp says what they are told.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// IEEE 754 double precision on pairs of words, low word first: f64_of, f64_add, f64_multiply,
// f64_divide, f64_less, f64_round, f64_bits.
extern const std::string_view kFloat64;
// Ratio, ratio_of and what a value becomes: code_of. After kFloat64.
extern const std::string_view kCodes;
// The range of values, joined over a workgroup. After kFloat64.
extern const std::string_view kRange;
// Which word an invocation makes; what a block of values has as its largest.
extern const std::string_view kWords, kBlockScale;

extern const Kernel kPartial, kScales;
extern const Kernel kBlockScales, kWideCodes, kWideCodes64, kGroupCodes, kClear, kMark;

}  // namespace loom::core::webgpu
