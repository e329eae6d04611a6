// Adamax: the infinity norm in place of the second moment (Kingma and Ba, 2015). The op has the
// formula.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kAdamaxOptimizer;
const OptimizerDef kAdamaxOptimizer = {.update = UpdateKind::adamax, .scalars = bias_corrections};

}  // namespace loom::core
