// NAdam, with the momentum of Nesterov (Dozat, 2016). The op has the formula; here are its scalars.
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

namespace {

// u(t): the momentum rises from half of beta1.
double momentum_at(float beta1, int64_t t) {
  return static_cast<double>(beta1) *
         (1.0 - 0.5 * positive_power(0.96, static_cast<double>(t) * 0.004));
}

// The cache has u(1) ... u(update).
void nadam_scalars(const Optimizer& constants, int64_t t, float* hyper, ScalarCache& cache) {
  bias_corrections(constants, t, hyper, cache);
  const float beta1 = *constants.beta1;
  if (t < cache.update) cache = {};
  while (cache.update < t) cache.product *= momentum_at(beta1, ++cache.update);
  const double next = momentum_at(beta1, t + 1);
  hyper[1] = static_cast<float>((1.0 - momentum_at(beta1, t)) / (1.0 - cache.product));
  hyper[3] = static_cast<float>(next / (1.0 - cache.product * next));
}

}  // namespace

extern const OptimizerDef kNadamOptimizer;
const OptimizerDef kNadamOptimizer = {.update = UpdateKind::nadam, .scalars = nadam_scalars};

}  // namespace loom::core
