// Direct random target projection (Frenkel, Lefebvre and Bol, 2021): s_k = -w t B_k.
#include "learn/rules/rule.hpp"
#include "learn/rules/signals.hpp"

namespace loom::core {

extern const RuleDef kDrtpRule;
const RuleDef kDrtpRule = {.needs_targets = true, .direct = minus_targets};

}  // namespace loom::core
