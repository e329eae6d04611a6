// Lion (Chen et al., 2023). The op has the formula.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

extern const OptimizerDef kLionOptimizer;
const OptimizerDef kLionOptimizer = {.update = UpdateKind::lion, .usual = {.beta2 = 0.99f}};

}  // namespace loom::core
