// The shared part of value-wise kernels (Call::spread).
#pragma once

#include <initializer_list>

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

// For tensors of one shape: gives the kernel p.cols and place(n, p.x_s), the location of value n of
// a tensor bound as x.
Call& flat(Call& call, std::initializer_list<const Tensor*> tensors);

// Copies words. May run concurrently with other kernels.
Status copy_words(Frame& frame, const BufferSlice& from, const BufferSlice& to, int64_t count);

// activate_dx(kind, x): the derivative of an activation at x, or, with from_output, at the input
// whose output is x.
std::string_view slope_text(bool from_output);

// Both with the extra step of fuse_slope(): `slope` has a dx without gaps and may be null.
namespace kernels {
Status matmul_dx_slope(Frame& frame, const MatmulDxArgs& args, const UnaryDxArgs* slope);
Status conv_dx_slope(Frame& frame, const ConvDxArgs& args, const UnaryDxArgs* slope);
}  // namespace kernels

// A stretch of words and its target.
struct WordsMove {
  BufferSlice from, to;
  int64_t words;
};
Status move_words(Frame& frame, std::span<const WordsMove> moves);

}  // namespace loom::core::webgpu
