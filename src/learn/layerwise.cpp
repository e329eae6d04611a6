#include "learn/layerwise.hpp"

#include <algorithm>
#include <cmath>

namespace loom::core {
namespace {

constexpr float kTiny = 1.1920929e-7f;  // of adafactor: the least mean of squares

class Layer {
 public:
  Layer(Scribe& s, const OptimizerSpec& spec, const Trained& owner, const Tensor& p,
        const StepTensors& t)
      : s_(s), spec_(spec), m_(owner.m), v_(owner.v), group_(owner.group), p_(p), t_(t) {}

  Status step(const Tensor& g, const Tensor& scale) {
    finite_ = s_.fresh(Shape{1, 1});
    LOOM_TRY(s_.guard(t_.numbers, scale, finite_));
    if (spec_.layerwise == Layerwise::lamb) return lamb(g, scale);
    LOOM_ASSIGN(Tensor scaled, s_.binary(g, scale, BinaryKind::mul));
    scaled.shape = p_.shape;  // gradients of vectors may be a row
    scaled.row_stride = p_.shape.last();
    if (spec_.layerwise == Layerwise::sophia) return sophia(scaled);
    return spec_.layerwise == Layerwise::muon ? muon(scaled) : adafactor(scaled);
  }

 private:
  static float values_of(const Tensor& t) { return static_cast<float>(t.shape.count()); }

  // p -= rate[0] (g + decay p), nothing where scale is NaN.
  Status move(const Tensor& p, const Tensor& g, const Tensor& rate, const Tensor& scale,
              float decay = 0.0f) {
    OptimizeArgs o;
    o.p = p;
    o.g = g;
    o.hyper = rate;
    o.scale = scale;
    o.decay = decay;
    return s_.ops().optimize(o);
  }
  // average += rate[0] (value - average)
  Status follow(const Tensor& average, const Tensor& value, const Tensor& rate) {
    LOOM_ASSIGN(const Tensor back, s_.binary(average, value, BinaryKind::sub));
    return move(average, back, rate, finite_);
  }
  Result<Tensor> rms(const Tensor& x) {
    LOOM_ASSIGN(const Tensor norm, s_.norm(x));
    return s_.binary(norm, 1.0f / std::sqrt(values_of(x)), BinaryKind::mul);
  }

  // The op of adam moves a zero by the direction that is wanted, at a rate of 1.
  Status lamb(const Tensor& g, const Tensor& scale) {
    OptimizeArgs o;
    o.p = s_.fresh(p_.shape);
    LOOM_TRY(s_.ops().fill({o.p, 0.0f}));
    o.g = g;
    o.m = m_;
    o.v = v_;
    o.hyper = hyper_of(t_.hyper, t_.hyper.rows() - 1);
    o.scale = scale;
    o.kind = OptimizerKind::adam;
    o.beta1 = spec_.beta1;
    o.beta2 = spec_.beta2;
    o.eps = spec_.eps;
    LOOM_TRY(s_.ops().optimize(o));
    LOOM_ASSIGN(const Tensor decayed, s_.binary(p_, spec_.decay, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor r, s_.binary(decayed, o.p, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor ratio, trust(r));
    LOOM_ASSIGN(const Tensor factor, s_.binary(ratio, finite_, BinaryKind::mul));
    return move(p_, r, hyper_of(t_.hyper, group_), factor);
  }

  // |p| / |r|; where p is 0 the second term makes it 1, and where r is 0 it multiplies nothing.
  Result<Tensor> trust(const Tensor& r) {
    constexpr float kLeast = 1e-30f;
    LOOM_ASSIGN(const Tensor of_p, s_.norm(p_));
    LOOM_ASSIGN(const Tensor of_r, s_.norm(r));
    LOOM_ASSIGN(const Tensor below, s_.binary(of_r, kLeast, BinaryKind::max));
    LOOM_ASSIGN(const Tensor ratio, s_.binary(of_p, below, BinaryKind::div));
    LOOM_ASSIGN(const Tensor many, s_.binary(of_p, kLeast, BinaryKind::div));
    LOOM_ASSIGN(const Tensor there, s_.binary(many, 1.0f, BinaryKind::min));
    LOOM_ASSIGN(const Tensor one, s_.number(1.0f));
    LOOM_ASSIGN(const Tensor absent, s_.binary(one, there, BinaryKind::sub));
    return s_.binary(ratio, absent, BinaryKind::add);
  }

  // The mean of squares of every value of g, as it is estimated.
  Result<Tensor> variance(const Tensor& g) {
    const int64_t groups = (t_.hyper.rows() - 1) / 2;
    const Tensor rate = hyper_of(t_.hyper, groups);
    LOOM_ASSIGN(const Tensor squares, s_.binary(g, g, BinaryKind::mul));
    if (m_.empty()) {
      LOOM_TRY(follow(v_, squares, rate));
      return v_;
    }
    const int64_t rows = g.rows(), cols = g.cols();
    const Tensor by_row = s_.fresh(Shape{rows}), by_col = s_.fresh(Shape{cols});
    LOOM_TRY(s_.ops().reduce({squares, by_row, ReduceKind::mean}));
    LOOM_TRY(s_.ops().reduce_cols({squares, by_col}));
    LOOM_ASSIGN(const Tensor col_mean,
                s_.binary(by_col, 1.0f / static_cast<float>(rows), BinaryKind::mul));
    LOOM_TRY(follow(m_, by_row, rate));
    LOOM_TRY(follow(v_, col_mean, rate));
    const Tensor mean = s_.fresh(Shape{1, 1}), product = s_.fresh(Shape{rows, cols});
    LOOM_TRY(s_.ops().reduce({as_matrix(m_, 1, rows), mean, ReduceKind::mean}));
    LOOM_ASSIGN(const Tensor least, s_.binary(mean, kTiny, BinaryKind::max));
    // Divided before they are multiplied, since products of squares of small gradients are 0.
    LOOM_ASSIGN(const Tensor share, s_.binary(as_matrix(m_, rows, 1), least, BinaryKind::div));
    LOOM_TRY(s_.ops().gemm({share, as_matrix(v_, 1, cols), product}));
    return product;
  }

  Status adafactor(const Tensor& g) {
    LOOM_ASSIGN(const Tensor mean, variance(g));
    LOOM_ASSIGN(const Tensor most, s_.binary(mean, kTiny * kTiny, BinaryKind::max));
    LOOM_ASSIGN(const Tensor root, s_.unary(most, UnaryKind::sqrt));
    LOOM_ASSIGN(const Tensor u, s_.binary(g, root, BinaryKind::div));
    LOOM_ASSIGN(const Tensor size, rms(u));
    LOOM_ASSIGN(const Tensor shrink, s_.binary(size, 1.0f, BinaryKind::max));
    LOOM_ASSIGN(const Tensor own, rms(p_));
    LOOM_ASSIGN(const Tensor large, s_.binary(own, spec_.eps, BinaryKind::max));
    LOOM_ASSIGN(const Tensor ratio, s_.binary(large, shrink, BinaryKind::div));
    LOOM_ASSIGN(const Tensor update, s_.binary(u, ratio, BinaryKind::mul));
    if (spec_.decay != 0.0f) {
      const Tensor nothing = s_.fresh(p_.shape);
      LOOM_TRY(s_.ops().fill({nothing, 0.0f}));
      const int64_t plain = (t_.hyper.rows() - 1) / 2 + 1 + group_;
      LOOM_TRY(move(p_, nothing, hyper_of(t_.hyper, plain), finite_, spec_.decay));
    }
    return move(p_, update, hyper_of(t_.hyper, group_), finite_);
  }

  // a x + (b x x' + c (x x')^2) x; of a tall matrix from the other side, where products are small.
  Result<Tensor> newton_schulz(const Tensor& x) {
    constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
    const bool tall = x.rows() > x.cols();
    const int64_t n = std::min(x.rows(), x.cols());
    const Tensor square = s_.fresh(Shape{n, n}), fourth = s_.fresh(Shape{n, n});
    LOOM_TRY(s_.ops().gemm({x, x, square, tall, !tall}));
    LOOM_TRY(s_.ops().gemm({square, square, fourth}));
    LOOM_ASSIGN(const Tensor second, s_.binary(square, kB, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor last, s_.binary(fourth, kC, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor both, s_.binary(second, last, BinaryKind::add));
    const Tensor product = s_.fresh(x.shape);
    LOOM_TRY(tall ? s_.ops().gemm({x, both, product}) : s_.ops().gemm({both, x, product}));
    LOOM_ASSIGN(const Tensor first, s_.binary(x, kA, BinaryKind::mul));
    return s_.binary(first, product, BinaryKind::add);
  }

  // m = b1 m + (1 - b1) g
  Status average(const Tensor& g) {
    const Tensor rate = s_.fresh(Shape{4});
    LOOM_TRY(s_.ops().fill({rate, 1.0f - spec_.beta1}));
    return follow(m_, g, rate);
  }

  Status sophia(const Tensor& g) {
    LOOM_TRY(average(g));
    LOOM_ASSIGN(const Tensor curved, s_.binary(v_, spec_.curvature.gamma, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor least, s_.binary(curved, spec_.eps, BinaryKind::max));
    LOOM_ASSIGN(const Tensor ratio, s_.binary(m_, least, BinaryKind::div));
    LOOM_ASSIGN(const Tensor below, s_.binary(ratio, 1.0f, BinaryKind::min));
    LOOM_ASSIGN(const Tensor update, s_.binary(below, -1.0f, BinaryKind::max));
    return move(p_, update, hyper_of(t_.hyper, group_), finite_, spec_.decay);
  }

  Status muon(const Tensor& g) {
    constexpr int kSteps = 5;
    LOOM_TRY(average(g));
    LOOM_ASSIGN(const Tensor fresh, s_.binary(g, 1.0f - spec_.beta1, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor old, s_.binary(m_, spec_.beta1, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor u, s_.binary(fresh, old, BinaryKind::add));
    LOOM_ASSIGN(const Tensor norm, s_.norm(u));
    LOOM_ASSIGN(const Tensor least, s_.binary(norm, 1e-7f, BinaryKind::max));
    LOOM_ASSIGN(Tensor x, s_.binary(u, least, BinaryKind::div));
    for (int i = 0; i < kSteps; ++i) {
      LOOM_ASSIGN(x, newton_schulz(x));
    }
    const float size = static_cast<float>(std::max(p_.rows(), p_.cols()));
    LOOM_ASSIGN(const Tensor update, s_.binary(x, 0.2f * std::sqrt(size), BinaryKind::mul));
    return move(p_, update, hyper_of(t_.hyper, group_), finite_, spec_.decay);
  }

  Scribe& s_;
  const OptimizerSpec& spec_;
  Tensor m_, v_;
  int64_t group_;
  Tensor p_;
  const StepTensors& t_;
  Tensor finite_;  // 1, or NaN where the step is dropped
};

}  // namespace

bool is_layerwise(const OptimizerSpec& spec, const Shape& shape) {
  if (spec.layerwise == Layerwise::muon) return shape.rank() == 2;
  return spec.layerwise != Layerwise::none && !spec.kfac();
}

Moments moments_of(const OptimizerSpec& spec, const Shape& shape) {
  const bool matrix = shape.rank() == 2;
  if (spec.layerwise == Layerwise::adafactor) {
    if (!matrix) return {{}, shape};
    return {Shape{shape[0]}, Shape{shape[1]}};
  }
  if (spec.layerwise == Layerwise::muon && matrix) return {shape, {}};
  Moments moments;
  if (keeps_m(spec.kind)) moments.m = shape;
  if (keeps_v(spec.kind)) moments.v = shape;
  return moments;
}

Status record_layerwise(Scribe& s, const OptimizerSpec& spec, const Trained& p,
                        const Tensor& values, const Tensor& g, const Tensor& scale,
                        const StepTensors& t) {
  return Layer(s, spec, p, values, t).step(g, scale);
}

}  // namespace loom::core
