// Attention of a single query row, split over workgroups.
#pragma once

#include "backend/webgpu/kernels/attention/rope_write.hpp"
#include "backend/webgpu/wgsl/frame.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {

struct OneRow {
  bool fits = false;   // attend_one() takes it
  int64_t begin = 0;   // the first position of split 0, a multiple of 16
  int64_t splits = 1;  // of each head, up to 64
  int64_t rounds = 1;  // of 64 positions in each
};
OneRow one_row(const AttentionArgs& args);
// part: if splits > 1, they leave their sums, largest scores and sums of exponentials here for
// join_splits(); join_bytes(args, splits) bytes. run: the commands before the attention, which are
// included. The newest position is then the last, and rotated queries and keys are not written.
Status attend_one(Frame& frame, const AttentionArgs& args, const OneRow& row,
                  const BufferSlice& part, const RopeWrite* run = nullptr);

// The shared part of attend_one and attend_placed: 64 positions at a time. Four slices of 64 lanes
// put parts of the scores in `partial`. four_parts(i) is their sum; score_of(dot) is the input of
// the softmax; `weight` is its result; `chunks` is the number of values of a head per lane.
extern const std::string_view kFourSlices;

// For any number of query rows. A split leaves a line of floats: its sums, up to a multiple of 4,
// then the largest score, the sum of exponentials and two unused values.
inline int64_t join_line(int64_t width) {
  return round_up(width, 4) + 4;
}
int64_t join_bytes(const AttentionArgs& args, int64_t splits);
Status join_splits(Frame& frame, const AttentionArgs& args, int64_t splits,
                   const BufferSlice& part);

}  // namespace loom::core::webgpu
