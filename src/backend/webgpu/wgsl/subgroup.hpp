// Subgroups: lanes in a row that swap values in registers, by the operations of subgroups.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Finds out how many lanes in a row do (AdapterReport::subgroup). WGSL promises neither that
// subgroups are of one size nor that they lie in a row, so an adapter that says the former is asked
// for the latter, by a kernel that swaps the numbers of lanes. Errors: the device was lost.
Status find_subgroup(Gpu& gpu, Memory& memory, Frame& frame);

}  // namespace loom::core::webgpu
