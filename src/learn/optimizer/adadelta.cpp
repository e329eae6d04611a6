// Adadelta (Zeiler, 2012). The op has the formula.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kAdadeltaOptimizer;
const OptimizerDef kAdadeltaOptimizer = {.update = UpdateKind::adadelta,
                                         .usual = {.beta2 = 0.9f, .eps = 1e-6f}};

}  // namespace loom::core
