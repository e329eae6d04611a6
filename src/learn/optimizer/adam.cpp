// Adam (Kingma and Ba, 2015), and with decoupled weight decay (Loshchilov and Hutter, 2019). The op
// has the formulas.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kAdamOptimizer, kAdamwOptimizer;
const OptimizerDef kAdamOptimizer = {.update = UpdateKind::adam, .scalars = bias_corrections};
const OptimizerDef kAdamwOptimizer = {
    .update = UpdateKind::adamw, .usual = {.weight_decay = 0.01f}, .scalars = bias_corrections};

}  // namespace loom::core
