// The bodies of the reference backend, one per row of ops.def, and what they share. Each lane
// computes whole outputs in a fixed order, so the lane count never changes a bit. Nothing here
// allocates, vectorises by hand or is clever. Not an interface: others use reference_ops().
#pragma once

#include "ops/ops.hpp"

namespace loom::reference {

#define LOOM_OP(name, Args) void name(const Args& args, const Lane& lane);
#include "ops/ops.def"
#undef LOOM_OP

// y = softmax(x * scale) over n values; x and y may be the same memory. All zeros when no value is
// above -inf.
void softmax_row(const float* x, float scale, int64_t n, float* y);

}  // namespace loom::reference
