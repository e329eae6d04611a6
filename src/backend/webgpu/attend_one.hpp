// Attention of a single query row, split over workgroups by 64 positions.
#pragma once

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// Whether attend_one() takes these arguments; `positions`: from the first that is seen, in steps.
bool attends_one(const AttentionArgs& args, int64_t positions);
// `begin`: the first position of split 0, a multiple of 16; part: where splits > 1 leave their
// sums, largest scores and sums of exponentials, as attention.cpp joins them.
Status attend_one(Frame& frame, const AttentionArgs& args, int64_t begin, int64_t splits,
                  const Place& part);

}  // namespace loom::webgpu
