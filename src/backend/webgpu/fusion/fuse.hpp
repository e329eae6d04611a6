// Fusion: several commands of a list as one dispatch. It serves lists of one row (a token of a
// language model), in which a dispatch costs more than its arithmetic. A fused dispatch leaves the
// same values in memory as its commands, except values that are overwritten before they are read.
#pragma once

#include <span>

#include "backend/webgpu/fusion/commands.hpp"
#include "backend/webgpu/kernels/attention/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// The number of commands that were taken from the front of `rest`; 0 means none. If rows are alone
// (Frame::rows_alone), the choice does not depend on the number of rows: only products, and rope
// with the cache write, are fused.
Result<int64_t> fuse(Frame& frame, std::span<const Command> rest);

// The parts of fuse(), besides those of fused.hpp and fused_many.hpp. For one row: norm,
// quantize_rows, up to three matmul over the same row, then gated or an addition. `joined` is a row
// whose splits are not joined yet and that no other command reads.
struct JoinedRow;
Result<int64_t> fuse_products(Frame& frame, std::span<const Command> rest,
                              const JoinedRow* joined = nullptr);
// rope of queries, rope of keys, kv_write, attention of one row, and the products over its output.
Result<int64_t> fuse_attention(Frame& frame, std::span<const Command> rest);
// rope of queries, rope of keys, kv_write.
Result<int64_t> fuse_rope(Frame& frame, std::span<const Command> rest);
// Whether the first three commands are rope, rope and kv_write with one table and one position.
bool take_rope_write(const Frame& frame, std::span<const Command> rest, RopeWrite& run);

}  // namespace loom::core::webgpu
