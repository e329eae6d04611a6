// A mask of the largest values of a row, for layers that keep some values and drop the rest.
// Private to the room.
#pragma once

#include "layers/core/layer.hpp"

namespace loom::core {

// 1 at the k largest values of each row of x, 0 elsewhere. There are always exactly k: among equal
// values the first ones win, as in `topk` and `argmax`. The mask is [R, N] like x, contiguous, and
// carries no gradient. x [R, N] with 1 <= k <= N <= 2^24.
Result<Tensor> largest(ForwardCall& call, const Tensor& x, int64_t k);

}  // namespace loom::core
