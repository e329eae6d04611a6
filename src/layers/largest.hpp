// Which values of a row are its largest, as a mask: for layers that keep some and drop the rest.
// Private to the room.
#pragma once

#include "layers/layer.hpp"

namespace loom::core {

// 1 at the k largest values of each row of x, 0 elsewhere: k of them whatever is equal to what,
// because of equal values those that stand first are taken, as `topk` and `argmax` do. The mask is
// [R, N] as x, without gaps, and passes no gradient on. x [R, N] with 1 <= k <= N <= 2^24.
Result<Tensor> largest(ForwardCall& call, const Tensor& x, int64_t k);

}  // namespace loom::core
