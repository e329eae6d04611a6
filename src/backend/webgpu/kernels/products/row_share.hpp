// The work of one lane in the kernels of a single row: its share of one or two groups of sixteen
// outputs. Four lanes share the rows of a group, four each; further lanes take other k.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Adds the texts. The kernel sees:
//   products(base0, base1, first, lane) -> Sums   s0 and, for two groups, s1: four outputs of each.
//                                   base is the first word of each group.
//                                   first: whether this is the workgroup that keeps the row.
// It needs weights() as quads, constants depth, piece and pieces, and:
//   begin_pieces(lane)          before the first piece.
//   stage(first, begin, lane)   brings up to `piece` values of the row from `begin` on into
//                               `staged`, or into a_codes, a_scales and a_sums; every lane
//                               calls, and it ends with a barrier.
// quantized: the row as 8-bit codes; only for types of reads_levels().
Call& share_row(Call& call, DType dtype, bool quantized, bool two);

}  // namespace loom::core::webgpu
