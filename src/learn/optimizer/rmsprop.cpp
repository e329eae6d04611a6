// RMSprop (Hinton, 2012). The op has the formula.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kRmspropOptimizer;
const OptimizerDef kRmspropOptimizer = {.update = UpdateKind::rmsprop, .usual = {.beta2 = 0.99f}};

}  // namespace loom::core
