// Packed weights (R16) in kernels: one decode snippet per number type, read as they lie.
#pragma once

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// Binds the packed matrix `w` to a call, as an operand "w" of words. Its kernel sees
//   w_at(row, k) -> f32     value k of row `row`, rounded to f32 once
// for row < rows and k < cols. Errors: none; a type without a snippet makes the call fail with
// Code::unsupported.
Call& weights(Call& call, const Tensor& w);

}  // namespace loom::webgpu
