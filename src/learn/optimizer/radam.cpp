// RAdam, rectified (Liu et al., 2020). The op has the formula; here are its scalars.
#include <cmath>

#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

namespace {

// Before the variance of the averages is known well enough the update goes without them.
void radam_scalars(const Optimizer& constants, int64_t t, float* hyper, ScalarCache& cache) {
  bias_corrections(constants, t, hyper, cache);
  const double c2 = bias_correction(*constants.beta2, t);
  const double most = 2.0 / (1.0 - static_cast<double>(*constants.beta2)) - 1.0;
  const double length = most - 2.0 * static_cast<double>(t) * (1.0 - c2) / c2;
  if (length <= 5.0) return;
  const double rectified =
      ((length - 4.0) * (length - 2.0) * most) / ((most - 4.0) * (most - 2.0) * length);
  hyper[3] = static_cast<float>(std::sqrt(rectified * c2));
}

}  // namespace

extern const OptimizerDef kRadamOptimizer;
const OptimizerDef kRadamOptimizer = {.update = UpdateKind::radam, .scalars = radam_scalars};

}  // namespace loom::core
