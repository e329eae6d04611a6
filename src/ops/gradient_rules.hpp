// One gradient rule per op. A rule asks for the gradient of the op's outputs, records the ops that
// turn it into contributions, and puts those where the differentiator says. Ops whose result is no
// smooth function of anything (ids, codes, caches, fills, gradients themselves) have an empty rule.
#pragma once

#include "ops/args.hpp"

namespace loom::core {

class Differentiator;

#define LOOM_OP(name, Args) Status gradient_rule(Differentiator& d, const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::core
