// Subgroups: adjacent lanes that exchange values in registers, by subgroup operations.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Measures how many adjacent lanes exchange values (AdapterReport::subgroup). WGSL does not promise
// that subgroups have one size, or that their lanes are adjacent. If an adapter reports one size, a
// kernel that exchanges lane numbers checks adjacency. Errors: the device was lost.
Status find_subgroup(Gpu& gpu, Memory& memory, Frame& frame);

}  // namespace loom::core::webgpu
