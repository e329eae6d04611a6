// Rows at positions of their own (ops/recording/pages.hpp) in kernels: the position of row r, and
// the location of each group of 16 positions of its sequence in the cache.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// For row r the kernel sees:
//   position_of(r) -> u32.
//   group_of(r, g) -> u32     location of group g of its sequence, in groups of the cache.
//   base_of(r) -> u32         words before its sequence in the cache.
// If `places` is empty, rows follow each other from `first` on. They form runs of `run_length` (0
// means one run), in groups in their order. A compiler does not treat the contents of `places` as
// uniform. A kernel with barriers that depend on them passes them through workgroupUniformLoad().
Call& at_positions(Call& call, const Tensor& row_positions, int64_t first, int64_t run_length,
                   const KvCache* cache);

// Attention of rows at positions of their own. A workgroup has one head of one row and a stretch of
// positions. A second dispatch joins the stretches of a row if there are several. Stretches count
// from position 0 and rows share nothing else, so each row has the bits that it has alone.
Status attend_placed(Frame& frame, const AttentionArgs& args);

}  // namespace loom::core::webgpu
