// What kernels that go value by value (Call::spread) share.
#pragma once

#include <initializer_list>

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// For tensors of one shape: gives the kernel place(n, p.x_s), where value n of a tensor bound as x
// lies, and p.cols.
Call& flat(Call& call, std::initializer_list<const Tensor*> tensors);

}  // namespace loom::webgpu
