// What kernels that go value by value (Call::spread) share.
#pragma once

#include <initializer_list>

#include "backend/webgpu/wgsl/frame.hpp"
#include "ops/args.hpp"

namespace loom::core::webgpu {

// For tensors of one shape: gives the kernel place(n, p.x_s), where value n of a tensor bound as x
// lies, and p.cols.
Call& flat(Call& call, std::initializer_list<const Tensor*> tensors);

// Copies words; may run beside other kernels.
Status copy_words(Frame& frame, const BufferSlice& from, const BufferSlice& to, int64_t count);

// activate_dx(kind, x), the derivative of an activation at x or, from_output, at its value there.
std::string_view slope_text(bool from_output);

// The two with what fuse_slope() adds: `slope` takes dx without gaps; null: nothing.
namespace kernels {
Status matmul_dx_slope(Frame& frame, const MatmulDxArgs& args, const UnaryDxArgs* slope);
Status conv_dx_slope(Frame& frame, const ConvDxArgs& args, const UnaryDxArgs* slope);
}  // namespace kernels

// Stretches of words from one place to another.
struct WordsMove {
  BufferSlice from, to;
  int64_t words;
};
Status move_words(Frame& frame, std::span<const WordsMove> moves);

}  // namespace loom::core::webgpu
