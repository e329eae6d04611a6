// LAMB (You et al., 2020, "Large Batch Optimization for Deep Learning"). With m and v as of Adam,
// bias corrected, and wd the decay: r = m / (sqrt(v) + eps) + wd p; p -= lr (|p| / |r|) r, the
// ratio 1 where one of them is 0.
#include <algorithm>

#include "learn/optimizer/optimizer.hpp"

namespace loom::core {
namespace {

// |p| / |r|; where p is 0 the second term makes it 1, and where r is 0 it multiplies nothing.
Result<Tensor> trust_ratio(WholeUpdate& u, const Tensor& p, const Tensor& r) {
  auto& s = u.s;
  constexpr float kMin = 1e-30f;
  LOOM_ASSIGN(const Tensor of_p, s.norm(p));
  LOOM_ASSIGN(const Tensor of_r, s.norm(r));
  LOOM_ASSIGN(const Tensor below, s.binary(of_r, kMin, BinaryKind::max));
  LOOM_ASSIGN(const Tensor ratio, s.binary(of_p, below, BinaryKind::div));
  LOOM_ASSIGN(const Tensor large, s.binary(of_p, kMin, BinaryKind::div));
  LOOM_ASSIGN(const Tensor present, s.binary(large, 1.0f, BinaryKind::min));
  LOOM_ASSIGN(const Tensor one, s.number(1.0f));
  LOOM_ASSIGN(const Tensor absent, s.binary(one, present, BinaryKind::sub));
  return s.binary(ratio, absent, BinaryKind::add);
}

// The op of Adam moves a zero by the direction, at a rate of 1, which is the last row of hyper.
Status lamb_step(WholeUpdate& u) {
  OptimizeArgs o;
  o.p = u.s.fresh(u.p.shape);
  LOOM_TRY(u.s.ops().fill({o.p, 0.0f}));
  o.g = u.g;
  o.m = u.m;
  o.v = u.v;
  o.hyper = hyper_of(u.t.hyper, u.t.hyper.rows() - 1);
  o.scale = u.scale;
  o.kind = UpdateKind::adam;
  o.beta1 = *u.constants.beta1;
  o.beta2 = *u.constants.beta2;
  o.eps = *u.constants.eps;
  LOOM_TRY(u.s.ops().optimize(o));
  LOOM_ASSIGN(const Tensor decayed, u.s.binary(u.p, *u.constants.weight_decay, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor r, u.s.binary(decayed, o.p, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor ratio, trust_ratio(u, u.p, r));
  LOOM_ASSIGN(const Tensor factor, u.s.binary(ratio, u.finite, BinaryKind::mul));
  return u.move(u.p, r, u.rate(), factor);
}

int64_t one_row(int64_t) {
  return 1;
}
void fill_unit_rate(const ExtraRows& rows) {
  std::copy_n(rows.rates, 4, rows.extra);
  rows.extra[0] = 1.0f;
}

}  // namespace

extern const OptimizerDef kLambOptimizer;
const OptimizerDef kLambOptimizer = {.update = UpdateKind::adam,
                                     .usual = {.eps = 1e-6f, .weight_decay = 0.01f},
                                     .step = lamb_step,
                                     .scalars = bias_corrections,
                                     .extra_rows = one_row,
                                     .fill_extra = fill_unit_rate};

}  // namespace loom::core
