// Rows at places of their own (ops/pages.hpp) in kernels: where row r stands, and where the cache
// keeps a group of 16 positions of its sequence.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// The kernel sees, of row r,
//   position_of(r) -> u32
//   group_of(r, g) -> u32     where group g of its sequence lies, in groups of the cache
//   base_of(r) -> u32         words before its sequence in the cache
// `places` empty: rows follow each other from `first` on, in runs of `run_length` (0: one run), in
// groups that lie in their order. What places hold is not uniform to a compiler; a kernel that has
// barriers behind it passes it through workgroupUniformLoad().
Call& at_places(Call& call, const Tensor& places, int64_t first, int64_t run_length,
                const KvCache* cache);

// The attention of rows at places of their own: a workgroup has one head of one row and a stretch
// of positions; the stretches of a row are joined by a second dispatch where there are several.
// They are counted from position 0, and nothing else is shared, so a row has the bits that it has
// alone.
Status attend_placed(Frame& frame, const AttentionArgs& args);

}  // namespace loom::core::webgpu
