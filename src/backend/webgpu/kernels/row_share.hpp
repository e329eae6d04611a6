// What one lane multiplies in the kernels of a single row: its share of one or two groups of
// sixteen outputs. Four lanes share the rows of a group, four each; the lanes beyond them take
// other k.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Adds the texts; the kernel sees
//   products(base0, base1, first, lane) -> Sums   s0 and, of two groups, s1: four outputs of each;
//                                   base: the words the groups begin at, first: whether this is
//                                   the workgroup that keeps the row
// and needs weights() as quads, constants depth, piece and pieces, and
//   begin_pieces(lane)          before the first piece
//   stage(first, begin, lane)   brings the values of the row from `begin` on, up to `piece` of
//                               them, into `staged`, or into a_codes, a_scales and a_sums; every
//                               lane calls, and it ends with a barrier.
// quantized: the row as codes of 8 bits; only for types of reads_levels().
Call& share_row(Call& call, DType dtype, bool quantized, bool two);

}  // namespace loom::core::webgpu
