// Gradients of the loss (Rumelhart, Hinton and Williams, 1986): s_k = dL/dh_k. back_propagation
// follows them through the whole network. chain does so block by block, for budgets and gates.
#include "learn/rules/rule.hpp"

namespace loom::core {

extern const RuleDef kBackPropagationRule, kChainRule;
const RuleDef kBackPropagationRule = {.end_to_end = true, .gradients = true};
const RuleDef kChainRule = {.gradients = true, .gate = 0.2f};

}  // namespace loom::core
