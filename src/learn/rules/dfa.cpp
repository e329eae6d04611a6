// Direct feedback alignment (Nokland, 2016): s_k = e B_k.
#include "learn/rules/rule.hpp"

namespace loom::core {
namespace {

Result<Tensor> error(TraceBuilder&, const TrainStepOptions&, const StepTensors&, const Tensor& dy) {
  return dy;
}

}  // namespace

extern const RuleDef kDfaRule;
const RuleDef kDfaRule = {.direct = error};

}  // namespace loom::core
