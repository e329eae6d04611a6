// What layers do where sequences of a batch end early (ForwardCall::mask).
#pragma once

#include "layers/layer.hpp"

namespace loom::core {

// Whether sequences of `steps` positions may end early here. An Error where the pass knows lengths,
// but of other steps than this layer sees.
Result<bool> ends_early(ForwardCall& call, int64_t steps);
// Row ends().last of every sequence: t [sequences * length, width] -> [sequences, width].
Result<Tensor> last_rows(ForwardCall& call, const Tensor& t);
// Each sequence turned round, the rest of its rows where it was; t as above.
Result<Tensor> turned_rows(ForwardCall& call, const Tensor& t);
// Rows behind the ends as zeros; what they hold is finite. t as above.
Result<Tensor> cleared_rows(ForwardCall& call, const Tensor& t);

}  // namespace loom::core
