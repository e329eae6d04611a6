// Helpers for layers if sequences of a batch end early (ForwardCall::mask).
#pragma once

#include "layers/core/layer.hpp"

namespace loom::core {

// Whether sequences of `steps` positions may end early here. Errors: the lengths of the pass have
// another number of steps than this layer sees.
Result<bool> has_lengths(ForwardCall& call, int64_t steps);
// Row ends().last of every sequence: t [sequences * length, width] -> [sequences, width].
Result<Tensor> last_rows(ForwardCall& call, const Tensor& t);
// Each sequence reversed; rows after its end keep their position. t as above.
Result<Tensor> reversed_rows(ForwardCall& call, const Tensor& t);
// Clears rows after the ends to zeros; their values must be finite. t as above.
Result<Tensor> cleared_rows(ForwardCall& call, const Tensor& t);

}  // namespace loom::core
