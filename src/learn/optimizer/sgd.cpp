// w -= rate (g + decay w), with momentum, and with that of Nesterov. The op has the formulas.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kSgdOptimizer, kMomentumOptimizer, kNesterovOptimizer;
const OptimizerDef kSgdOptimizer = {.update = UpdateKind::sgd};
const OptimizerDef kMomentumOptimizer = {.update = UpdateKind::momentum};
const OptimizerDef kNesterovOptimizer = {.update = UpdateKind::nesterov};

}  // namespace loom::core
