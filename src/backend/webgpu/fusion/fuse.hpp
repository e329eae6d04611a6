// Fusion: several commands of a list as one dispatch, for lists of one row (a token of a
// language model), where a dispatch costs more than what it computes. A fused dispatch leaves what
// its commands would have left, but for values that nobody reads before they are written again.
#pragma once

#include <span>

#include "backend/webgpu/fusion/commands.hpp"
#include "backend/webgpu/kernels/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// How many commands at the front of `rest` were taken; 0: none.
// Where rows are alone (Frame::rows_alone) what is taken does not depend on how many there are:
// products, and rope with what is kept.
Result<int64_t> fuse(Frame& frame, std::span<const Command> rest);

// Its parts, beside fused.hpp and fused_many.hpp. Of one row: norm, quantize_rows, up to three
// matmul over the same row, then gated or an addition; `joined`: that row is yet to be joined, and
// nobody else reads it:
struct JoinedRow;
Result<int64_t> fuse_products(Frame& frame, std::span<const Command> rest,
                              const JoinedRow* joined = nullptr);
// rope of queries, rope of keys, kv_write, attention of one row, and the products over what it
// makes:
Result<int64_t> fuse_attention(Frame& frame, std::span<const Command> rest);
// rope of queries, rope of keys, kv_write.
Result<int64_t> fuse_rope(Frame& frame, std::span<const Command> rest);
// Whether the first three commands are that: by one table, at one place.
bool take_rope_write(const Frame& frame, std::span<const Command> rest, RopeWrite& run);

}  // namespace loom::core::webgpu
