// The gradient rule of an op, selected by its arguments (Gradient in ops/operands.hpp). A rule gets
// the gradient of the op's outputs and records the ops that turn it into contributions. It puts
// those where the differentiator says. It is defined exactly for the ops whose kGradient is `rule`.
// A missing rule does not link; an excess rule is never called.
#pragma once

#include "base/text.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {

#define LOOM_OP(name, Args) Status gradient_rule(Differentiator& d, const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

// An Error if the loss depends on a wanted tensor through an op without a rule.
template <class Args>
Status refuse_gradient(Differentiator& d, const Args& args) {
  bool asked = false;
  visit(args, [&](const Tensor& t, Access access) {
    asked = asked || (access != Access::read && !d.of(t).empty());
  });
  if (!asked) return {};
  return make_error(Code::unsupported,
                    "the op has no gradient rule; use another layer, or train only what comes "
                    "after it");
}

template <class Args>
Status differentiate_op(Differentiator& d, const Args& args) {
  if constexpr (gradient_kind<Args>() == Gradient::rule) {
    return gradient_rule(d, args);
  } else if constexpr (gradient_kind<Args>() == Gradient::missing) {
    return refuse_gradient(d, args);
  } else {
    return {};
  }
}

}  // namespace loom::core
