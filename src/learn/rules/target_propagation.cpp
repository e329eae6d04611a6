// Difference target propagation (Lee and others, 2015): s_k-1 = (g(h_k) - g(h_k - n s_k)) / n.
//
// fixed_dtp has g(v) = tanh(v B_k) with a random B_k (Shibuya and others, 2023), and s_m = beta e.
//
// dtp has g(v) = tanh(v V_k + c_k). V and c learn to invert block k: they restore h + u, u normal
// noise, from the output of the block for it. The last cut has s_m-1 = beta dL/dh_m-1.
#include "learn/rules/signal_builder.hpp"
#include "learn/rules/signal_planner.hpp"

namespace loom::core {
namespace {

Status plan_fixed(SignalPlanner& planner, size_t i) {
  return planner.fill_from_block(i);
}
Status plan_trained(SignalPlanner& planner, size_t i) {
  return planner.has_upper_cut(i) ? planner.fill_trained(i) : Status{};
}

Result<Tensor> inverse(SignalBuilder& b, const SignalCut& cut, const Tensor& v) {
  LOOM_ASSIGN(Tensor z, b.product(v, cut.random));
  if (!cut.bias.empty()) {
    LOOM_ASSIGN(z, b.s.binary(z, as_matrix(cut.bias, 1, z.cols()), BinaryKind::add));
  }
  return b.s.unary(z, UnaryKind::tanh);
}

// s_k through the difference of the inverse at h and at its target.
Result<Tensor> through_inverse(SignalBuilder& b, size_t i) {
  const Tensor& upper = b.output(i + 1);
  const auto n = static_cast<float>(b.t.network.y.rows());
  const int64_t from = upper.shape.count() / b.batch;
  const Tensor h = as_matrix(upper, b.batch, from), s = as_matrix(b.above(i), b.batch, from);
  LOOM_ASSIGN(const Tensor whole, b.s.binary(s, n, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor target, b.s.binary(h, whole, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor was, inverse(b, b.cuts[i], h));
  LOOM_ASSIGN(const Tensor local_target, inverse(b, b.cuts[i], target));
  LOOM_ASSIGN(const Tensor difference, b.s.binary(was, local_target, BinaryKind::sub));
  return b.s.binary(difference, 1.0f / n, BinaryKind::mul);
}

Result<Tensor> below_trained(SignalBuilder& b, size_t i) {
  if (i + 1 < b.cuts.size()) return through_inverse(b, i);
  LOOM_ASSIGN(const Tensor exact, b.through_block(i, true));
  return damped(b.s, b.options, as_matrix(exact, 1, exact.shape.count()));
}

// An update of an inverse by RMSprop; none where `finite` is NaN.
Status move(SignalBuilder& b, const Tensor& finite, const Tensor& p, const Tensor& g,
            const Tensor& v) {
  OptimizeArgs o;
  o.p = p;
  o.g = g;
  o.v = v;
  o.kind = UpdateKind::rmsprop;
  o.beta2 = 0.99f;
  o.scale = finite;
  o.hyper = b.s.fresh(Shape{4});
  LOOM_TRY(b.s.ops().fill({o.hyper, b.options.rule.inverse_rate}));
  return b.s.ops().optimize(o);
}

// Gradient of the mean of (g(f(h + u)) - (h + u))^2, and its step.
Status train_inverse(SignalBuilder& b, const Tensor& finite, size_t i) {
  const SignalCut& cut = b.cuts[i];
  const Tensor& h = b.output(i);
  const Tensor noise = b.s.fresh(h.shape);
  LOOM_TRY(b.s.ops().random({noise, b.t.network.step, b.options.seed,
                             kSignalStream + (uint64_t{1} << 32) + i, RandomKind::normal}));
  LOOM_ASSIGN(const Tensor small, b.s.binary(noise, b.options.rule.noise, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor noisy, b.s.binary(h, small, BinaryKind::add));
  LOOM_ASSIGN(Tensor v, run_again(b.trace, b.network, b.options, b.t, cut.above,
                                  b.cuts[i + 1].below + 1, noisy));
  v = as_matrix(v, b.batch, v.shape.count() / b.batch);
  const int64_t width = cut.random.cols();
  LOOM_ASSIGN(const Tensor back, inverse(b, cut, v));
  LOOM_ASSIGN(const Tensor gap,
              b.s.binary(back, as_matrix(noisy, b.batch, width), BinaryKind::sub));
  const float share = 2.0f / static_cast<float>(b.batch * width);
  LOOM_ASSIGN(const Tensor dg, b.s.binary(gap, share, BinaryKind::mul));
  const Tensor dz = b.s.fresh(dg.shape);
  LOOM_TRY(b.s.ops().unary_dx({back, dg, dz, UnaryKind::tanh, true}));
  const Tensor dv = b.s.fresh(cut.random.shape), dc = b.s.fresh(cut.bias.shape);
  LOOM_TRY(b.s.ops().gemm({v, dz, dv, true}));
  LOOM_TRY(b.s.ops().reduce_cols({dz, dc}));
  LOOM_TRY(move(b, finite, cut.random, dv, cut.random_v));
  return move(b, finite, cut.bias, dc, cut.bias_v);
}

Status train_inverses(SignalBuilder& b) {
  LOOM_ASSIGN(Tensor sum, b.s.number(0.0f));
  if (!b.t.loss.empty()) sum = b.t.loss;
  const Tensor finite = b.s.fresh(Shape{1, 1});
  LOOM_TRY(b.s.guard(b.t.numbers, sum, finite));
  for (size_t i = 0; i + 1 < b.cuts.size(); ++i) LOOM_TRY(train_inverse(b, finite, i));
  return {};
}

constexpr RuleOption kFixedOptions[] = {kBetaOption};
constexpr RuleOption kTrainedOptions[] = {
    kBetaOption, {"rule_noise", &RuleSpec::noise}, {"rule_inverse_rate", &RuleSpec::inverse_rate}};

}  // namespace

extern const RuleDef kFixedDtpRule, kDtpRule;
const RuleDef kFixedDtpRule = {
    .damped = true, .options = kFixedOptions, .plan_cut = plan_fixed, .below = through_inverse};
const RuleDef kDtpRule = {.options = kTrainedOptions,
                          .plan_cut = plan_trained,
                          .below = below_trained,
                          .after = train_inverses};

}  // namespace loom::core
