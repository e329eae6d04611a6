// Adagrad (Duchi et al., 2011). The op has the formula.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kAdagradOptimizer;
const OptimizerDef kAdagradOptimizer = {.update = UpdateKind::adagrad, .usual = {.eps = 1e-10f}};

}  // namespace loom::core
