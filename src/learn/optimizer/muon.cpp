// Muon (Jordan et al., 2024). For a matrix [R, C], with wd the decay:
//   m = b1 m + (1 - b1) g,  u = (1 - b1) g + b1 m
//   o = five steps  x = a x + (b x x' + c (x x')^2) x  from u / |u|
//   p -= lr (wd p + 0.2 sqrt(max(R, C)) o)
// The steps bring singular values near 1. The factor is that of Liu et al., 2025, "Muon is Scalable
// for LLM Training". Vectors take the op of AdamW.
#include <algorithm>
#include <cmath>

#include "learn/optimizer/optimizer.hpp"

namespace loom::core {
namespace {

// a x + (b x x' + c (x x')^2) x; of a tall matrix from the other side, where products are small.
Result<Tensor> newton_schulz(WholeUpdate& u, const Tensor& x) {
  auto& s = u.s;
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  const bool tall = x.rows() > x.cols();
  const int64_t n = std::min(x.rows(), x.cols());
  const Tensor square = s.fresh(Shape{n, n}), fourth = s.fresh(Shape{n, n});
  LOOM_TRY(s.ops().gemm({x, x, square, tall, !tall}));
  LOOM_TRY(s.ops().gemm({square, square, fourth}));
  LOOM_ASSIGN(const Tensor second, s.binary(square, kB, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor last, s.binary(fourth, kC, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor both, s.binary(second, last, BinaryKind::add));
  const Tensor product = s.fresh(x.shape);
  LOOM_TRY(tall ? s.ops().gemm({x, both, product}) : s.ops().gemm({both, x, product}));
  LOOM_ASSIGN(const Tensor first, s.binary(x, kA, BinaryKind::mul));
  return s.binary(first, product, BinaryKind::add);
}

Status muon_step(WholeUpdate& u) {
  constexpr int kSteps = 5;
  auto& s = u.s;
  const float beta = *u.constants.beta1;
  LOOM_ASSIGN(const Tensor g, u.scaled_gradient());
  LOOM_TRY(u.average(g));
  LOOM_ASSIGN(const Tensor fresh, s.binary(g, 1.0f - beta, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor old, s.binary(u.m, beta, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sum, s.binary(fresh, old, BinaryKind::add));
  LOOM_ASSIGN(const Tensor norm, s.norm(sum));
  LOOM_ASSIGN(const Tensor positive, s.binary(norm, 1e-7f, BinaryKind::max));
  LOOM_ASSIGN(Tensor x, s.binary(sum, positive, BinaryKind::div));
  for (int i = 0; i < kSteps; ++i) {
    LOOM_ASSIGN(x, newton_schulz(u, x));
  }
  const float size = static_cast<float>(std::max(u.p.rows(), u.p.cols()));
  LOOM_ASSIGN(const Tensor update, s.binary(x, 0.2f * std::sqrt(size), BinaryKind::mul));
  return u.move(u.p, update, u.rate(), u.finite, *u.constants.weight_decay);
}

OptimizerState muon_state(const Shape& shape) {
  return {shape, {}};
}

}  // namespace

extern const OptimizerDef kMuonOptimizer;
const OptimizerDef kMuonOptimizer = {.update = UpdateKind::adamw,
                                     .usual = {.beta1 = 0.95f, .weight_decay = 0.1f},
                                     .state = muon_state,
                                     .step = muon_step,
                                     .steps_matrices_alone = true,
                                     .scalars = bias_corrections};

}  // namespace loom::core
