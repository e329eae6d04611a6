// Hebbian learning (Oja, 1982) with the index of the original project put right. It hardly learns,
// and exists for comparisons:
//   t_m = t, t_k-1,i = sum_o t_k,o W_oi / sum_o |W_oi|, s_k = w (h_k - t_k)
// with slopes of activations 1.
#include "learn/rules/signal_builder.hpp"
#include "learn/rules/signal_planner.hpp"

namespace loom::core {
namespace {

Status plan_cut(SignalPlanner& planner, size_t i) {
  SignalCut& at = planner.plan.cuts[i];
  at.weight = planner.dense_above(i);
  if (at.weight >= 0) return {};
  return planner.refused(at.above,
                         "is not a Dense layer of its own; hebb needs those, choose "
                         "diff-project");
}

// SignalBuilder::carried is the target at the current cut.
Result<Tensor> away_from_target(SignalBuilder& b, const Tensor& h) {
  LOOM_ASSIGN(const Tensor gap, b.s.binary(h, b.carried, BinaryKind::sub));
  return b.s.binary(gap, b.row_weights(), BinaryKind::mul);
}

Result<Tensor> top(SignalBuilder& b, const Tensor& dy) {
  LOOM_ASSIGN(const Tensor minus, minus_targets(b.s, b.options, b.t, dy));
  LOOM_ASSIGN(const Tensor safe, b.s.binary(b.row_weights(), 1e-12f, BinaryKind::max));
  LOOM_ASSIGN(const Tensor negative, b.s.binary(minus, safe, BinaryKind::div));
  LOOM_ASSIGN(b.carried, b.s.unary(negative, UnaryKind::neg));
  return away_from_target(b, as_matrix(b.t.network.y, dy.rows(), dy.cols()));
}

Result<Tensor> below(SignalBuilder& b, size_t i) {
  LOOM_ASSIGN(const NormalizedWeight w, normalized(b.s, b.weight_above(i), 1.0f));
  LOOM_ASSIGN(b.carried, project(b.s, w, b.carried));
  return away_from_target(b, as_matrix(b.output(i), b.carried.rows(), b.carried.cols()));
}

}  // namespace

extern const RuleDef kHebbRule;
const RuleDef kHebbRule = {
    .needs_targets = true, .linear_slopes = true, .plan_cut = plan_cut, .top = top, .below = below};

}  // namespace loom::core
