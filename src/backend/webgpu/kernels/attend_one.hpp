// Attention of a single query row, split over workgroups.
#pragma once

#include "backend/webgpu/kernels/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"
#include "base/checked.hpp"

namespace loom::core::webgpu {

struct OneRow {
  bool fits = false;   // attend_one() takes it
  int64_t begin = 0;   // the first position of split 0, a multiple of 16
  int64_t splits = 1;  // of each head, up to 64
  int64_t rounds = 1;  // of 64 positions in each
};
OneRow one_row(const AttentionArgs& args);
// part: where splits > 1 leave their sums, largest scores and sums of exponentials,
// join_bytes(args, splits) of them, for join_splits(). run: what comes before the attention, and is
// done with it: the newest position is the last, and neither queries nor keys that are rotated are
// written.
Status attend_one(Frame& frame, const AttentionArgs& args, const OneRow& row,
                  const BufferSlice& part, const RopeWrite* run = nullptr);

// What attend_one and attend_placed share: 64 positions at a time, for whose scores four slices of
// 64 lanes have parts in `partial`; four_parts(i) is their sum, score_of(dot) what softmax sees of
// it, `weight` what it makes of it, `chunks` how many values of a head a lane stands for.
extern const std::string_view kFourSlices;

// For any number of query rows. A split leaves a line of floats: its sums, up to a multiple of 4,
// then the largest score, the sum of exponentials and two that mean nothing.
inline int64_t join_line(int64_t width) {
  return round_up(width, 4) + 4;
}
int64_t join_bytes(const AttentionArgs& args, int64_t splits);
Status join_splits(Frame& frame, const AttentionArgs& args, int64_t splits,
                   const BufferSlice& part);

}  // namespace loom::core::webgpu
