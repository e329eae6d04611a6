// Adafactor (Shazeer and Stern, 2018; the constants are those of PyTorch). With t updates from 1,
// b = t^-0.8 and wd the decay: of a matrix [R, C] rows and columns keep means of squares, each
// moved by b towards those of g; v = rows cols / mean(rows); of a vector v itself moves to g^2. u =
// g / sqrt(v); p -= lr wd p; p -= max(eps, rms p) min(lr, 1 / sqrt t) u / max(1, rms u). The means
// of rows are the state m, those of columns v. Rows of hyper besides the rates: one that moves
// means of squares, and one per rate with that of the decay.
#include <algorithm>
#include <cmath>

#include "learn/optimizer/optimizer.hpp"

namespace loom::core {
namespace {

constexpr float kMinSquares = 1.1920929e-7f;  // mean of squares

int64_t rates_of(const WholeUpdate& u) {
  return (u.t.hyper.rows() - 1) / 2;
}

// The mean of squares of every value of g, as it is estimated.
Result<Tensor> factored_variance(WholeUpdate& u, const Tensor& g) {
  auto& s = u.s;
  const Tensor rate = hyper_of(u.t.hyper, rates_of(u));
  LOOM_ASSIGN(const Tensor squares, s.binary(g, g, BinaryKind::mul));
  if (u.m.empty()) {
    LOOM_TRY(u.follow(u.v, squares, rate));
    return u.v;
  }
  const int64_t rows = g.rows(), cols = g.cols();
  const Tensor by_row = s.fresh(Shape{rows}), by_col = s.fresh(Shape{cols});
  LOOM_TRY(s.ops().reduce({squares, by_row, ReduceKind::mean}));
  LOOM_TRY(s.ops().reduce_cols({squares, by_col}));
  LOOM_ASSIGN(const Tensor col_mean,
              s.binary(by_col, 1.0f / static_cast<float>(rows), BinaryKind::mul));
  LOOM_TRY(u.follow(u.m, by_row, rate));
  LOOM_TRY(u.follow(u.v, col_mean, rate));
  const Tensor mean = s.fresh(Shape{1, 1}), product = s.fresh(Shape{rows, cols});
  LOOM_TRY(s.ops().reduce({as_matrix(u.m, 1, rows), mean, ReduceKind::mean}));
  LOOM_ASSIGN(const Tensor floor, s.binary(mean, kMinSquares, BinaryKind::max));
  // Divided before they are multiplied, since products of squares of small gradients are 0.
  LOOM_ASSIGN(const Tensor share, s.binary(as_matrix(u.m, rows, 1), floor, BinaryKind::div));
  LOOM_TRY(s.ops().gemm({share, as_matrix(u.v, 1, cols), product}));
  return product;
}

Status adafactor_step(WholeUpdate& u) {
  auto& s = u.s;
  LOOM_ASSIGN(const Tensor g, u.scaled_gradient());
  LOOM_ASSIGN(const Tensor mean, factored_variance(u, g));
  LOOM_ASSIGN(const Tensor positive, s.binary(mean, kMinSquares * kMinSquares, BinaryKind::max));
  LOOM_ASSIGN(const Tensor root, s.unary(positive, UnaryKind::sqrt));
  LOOM_ASSIGN(const Tensor unit, s.binary(g, root, BinaryKind::div));
  LOOM_ASSIGN(const Tensor size, u.rms(unit));
  LOOM_ASSIGN(const Tensor shrink, s.binary(size, 1.0f, BinaryKind::max));
  LOOM_ASSIGN(const Tensor own, u.rms(u.p));
  LOOM_ASSIGN(const Tensor large, s.binary(own, *u.constants.eps, BinaryKind::max));
  LOOM_ASSIGN(const Tensor ratio, s.binary(large, shrink, BinaryKind::div));
  LOOM_ASSIGN(const Tensor update, s.binary(unit, ratio, BinaryKind::mul));
  const float decay = *u.constants.weight_decay;
  if (decay != 0.0f) {
    const Tensor nothing = s.fresh(u.p.shape);
    LOOM_TRY(s.ops().fill({nothing, 0.0f}));
    const Tensor rate = hyper_of(u.t.hyper, rates_of(u) + 1 + u.group);
    LOOM_TRY(u.move(u.p, nothing, rate, u.finite, decay));
  }
  return u.move(u.p, update, u.rate(), u.finite);
}

OptimizerState adafactor_state(const Shape& shape) {
  if (shape.rank() != 2) return {{}, shape};
  return {Shape{shape[0]}, Shape{shape[1]}};
}

void adafactor_scalars(const Optimizer&, int64_t t, float* hyper, ScalarCache&) {
  hyper[1] = hyper[2] = 1.0f;
  hyper[3] = static_cast<float>(positive_power(static_cast<double>(t), -0.8));
}

int64_t adafactor_rows(int64_t rates) {
  return rates + 1;
}
void fill_adafactor(const ExtraRows& rows) {
  float* const unit = rows.extra;
  std::copy_n(rows.rates, 4, unit);
  unit[0] = rows.rates[3];
  const double most = 1.0 / std::sqrt(static_cast<double>(rows.updates + 1));
  for (size_t i = 0; i < rows.factors.size(); ++i) {
    const double rate = rows.rate * rows.factors[i];
    std::copy_n(rows.rates, 4, unit + 4 * (i + 1));
    unit[4 * (i + 1)] = static_cast<float>(rate);
    rows.rates[4 * i] = static_cast<float>(std::min(rate, most));
  }
}

}  // namespace

extern const OptimizerDef kAdafactorOptimizer;
const OptimizerDef kAdafactorOptimizer = {.update = UpdateKind::sgd,
                                          .usual = {.eps = 1e-3f},
                                          .state = adafactor_state,
                                          .step = adafactor_step,
                                          .scalars = adafactor_scalars,
                                          .extra_rows = adafactor_rows,
                                          .fill_extra = fill_adafactor};

}  // namespace loom::core
