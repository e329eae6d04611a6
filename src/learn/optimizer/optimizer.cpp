// Code that optimizers share: constants, corrections of moments, updates of whole parameters.
#include "learn/optimizer/optimizer.hpp"

#include <cmath>

#include "base/numbers/dmath.hpp"

namespace loom::core {
namespace {

constexpr Optimizer kUsualConstants = {.beta1 = 0.9f,
                                       .beta2 = 0.999f,
                                       .eps = 1e-8f,
                                       .weight_decay = 0.0f,
                                       .damping = 1e-2f,
                                       .trust = 1e-2f,
                                       .gamma = 0.05f,
                                       .inverse_every = 10};

}  // namespace

Optimizer resolved(const Optimizer& optimizer) {
  Optimizer out = optimizer;
  fill_unset(out, optimizer_def(optimizer.kind).usual);
  fill_unset(out, kUsualConstants);
  return out;
}

bool TrainStepOptions::gathers() const {
  return accumulate > 1 || optimizer_def(optimizer.kind).gathers;
}

bool steps_whole(const OptimizerDef& def, const Shape& shape) {
  return def.step != nullptr && (!def.steps_matrices_alone || shape.rank() == 2);
}

OptimizerState state_of(const OptimizerDef& def, const Shape& shape) {
  if (def.state != nullptr && steps_whole(def, shape)) return def.state(shape);
  OptimizerState state;
  if (keeps_m(def.update)) state.m = shape;
  if (keeps_v(def.update)) state.v = shape;
  return state;
}

double positive_power(double base, double exponent) {
  return dmath::exp(exponent * dmath::log(base));
}

double bias_correction(float beta, int64_t t) {
  if (beta <= 0.0f) return 1.0;
  const double log = dmath::log(static_cast<double>(beta));
  return 1.0 - dmath::exp(static_cast<double>(t) * log);
}

void bias_corrections(const Optimizer& constants, int64_t t, float* hyper, ScalarCache&) {
  hyper[1] = static_cast<float>(bias_correction(*constants.beta1, t));
  hyper[2] = static_cast<float>(bias_correction(*constants.beta2, t));
  hyper[3] = 0.0f;
}

Status WholeUpdate::begin() {
  finite = s.fresh(Shape{1, 1});
  return s.guard(t.numbers, scale, finite);
}

Result<Tensor> WholeUpdate::scaled_gradient() {
  LOOM_ASSIGN(Tensor scaled, s.binary(g, scale, BinaryKind::mul));
  scaled.shape = p.shape;  // gradients of vectors may be a row
  scaled.row_stride = p.shape.last();
  return scaled;
}

Status WholeUpdate::move(const Tensor& to, const Tensor& by, const Tensor& rate,
                         const Tensor& factor, float decay) {
  OptimizeArgs o;
  o.p = to;
  o.g = by;
  o.hyper = rate;
  o.scale = factor;
  o.decay = decay;
  return s.ops().optimize(o);
}

Status WholeUpdate::follow(const Tensor& average, const Tensor& value, const Tensor& rate) {
  LOOM_ASSIGN(const Tensor back, s.binary(average, value, BinaryKind::sub));
  return move(average, back, rate, finite);
}

Status WholeUpdate::average(const Tensor& gradient) {
  const Tensor rate = s.fresh(Shape{4});
  LOOM_TRY(s.ops().fill({rate, 1.0f - *constants.beta1}));
  return follow(m, gradient, rate);
}

Result<Tensor> WholeUpdate::rms(const Tensor& x) {
  LOOM_ASSIGN(const Tensor norm, s.norm(x));
  const auto values = static_cast<float>(x.shape.count());
  return s.binary(norm, 1.0f / std::sqrt(values), BinaryKind::mul);
}

}  // namespace loom::core
