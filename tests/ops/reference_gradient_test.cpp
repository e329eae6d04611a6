// Gradients of value-wise ops, row-wise ops and products: the f64 reference of X_dx against central
// differences of X, sums over rows against naive ones.
#include "ops/args.hpp"
#include "ops/f64.hpp"

namespace loom::core {
namespace {

using test::dot;
using test::expect_close;
using test::expect_gradient;
using test::F64;
using test::run64;
using test::Weights64;

// ---- products ----

void expect_product(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
  const F64 a = a_transposed ? F64::random(k, m, 1, 2) : F64::random(m, k, 1, 2);
  const F64 b = b_transposed ? F64::random(n, k, 2) : F64::random(k, n, 2);
  for (bool accumulate : {false, true}) {
    const F64 y = F64::random(m, n, 3, 1), old = F64::random(m, n, 3);
    run64(&Ops::gemm,
          GemmArgs{a.tensor(), b.tensor(), y.tensor(), a_transposed, b_transposed, accumulate});
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = accumulate ? old.at(r, c) : 0.0;
        for (int64_t i = 0; i < k; ++i) {
          sum +=
              (a_transposed ? a.at(i, r) : a.at(r, i)) * (b_transposed ? b.at(c, i) : b.at(i, c));
        }
        expect_close("gemm", y.at(r, c), sum);
      }
    }
  }
}

TEST(Gemm, EveryTransposeIsTheNaiveProduct) {
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      expect_product(3, 5, 4, a, b);
      expect_product(2, 3, 300, a, b);
      expect_product(2, 3, 0, a, b);
    }
  }
}

TEST(MatmulDx, IsTheGradientOfMatmul) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::q8_0, DType::u32}) {
    const F64 x = F64::random(3, 33, 4, 1), dy = F64::random(3, 17, 5), dx(3, 33), y(3, 17);
    const Weights64 w(dtype, 17, 33, 6);
    run64(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), dx.tensor()});
    expect_gradient(cat("matmul_dx ", dtype_name(dtype)), x, dx, [&] {
      MatmulArgs forward;
      forward.x = x.tensor(), forward.w = w.tensor(), forward.y = y.tensor();
      run64(&Ops::matmul, forward);
      return dot(y, dy);
    });
    const F64 twice = F64::random(3, 33, 7), once = F64::random(3, 33, 7);
    run64(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), twice.tensor(), true});
    for (int64_t i = 0; i < dx.size(); ++i) EXPECT_EQ(twice[i], once[i] + dx[i]);
  }
}

TEST(SquaredDistance, IsTheNaiveSum) {
  const F64 x = F64::random(4, 300, 8, 3), y(4, 5);
  const Weights64 c(DType::f32, 5, 300, 9);
  run64(&Ops::squared_distance, SquaredDistanceArgs{x.tensor(), c.tensor(), y.tensor()});
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t k = 0; k < 5; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < 300; ++n) {
        const double d = x.at(r, n) - c.values().at(k, n);
        sum += d * d;
      }
      expect_close("distance", y.at(r, k), sum);
    }
  }
}

// ---- sums over rows ----

TEST(ReduceCols, AddsUpColumns) {
  for (int64_t rows : {0, 1, 33, 100}) {
    const F64 x = F64::random(rows, 5, 10, 2), y = F64::random(1, 5, 11);
    const F64 old = F64::random(1, 5, 11), fresh(1, 5);
    run64(&Ops::reduce_cols, ReduceColsArgs{x.tensor(), y.vector(), true});
    run64(&Ops::reduce_cols, ReduceColsArgs{x.tensor(), fresh.vector(), false});
    for (int64_t c = 0; c < 5; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += x.at(r, c);
      expect_close("sum", fresh[c], sum);
      EXPECT_EQ(y[c], old[c] + fresh[c]);
    }
  }
}

TEST(ScatterAddRows, IsTheGradientOfGatherRows) {
  const F64 table = F64::random(4, 3, 12), dtable(4, 3), y(6, 3), dy = F64::random(6, 3, 13);
  std::vector<int32_t> ids = {2, 0, 2, 2, 3, 0};
  const Tensor id_tensor{DType::i32, Layout::plain, Shape{6}, 6,
                         reinterpret_cast<std::byte*>(ids.data())};
  run64(&Ops::scatter_add_rows, ScatterAddRowsArgs{dy.tensor(), id_tensor, dtable.tensor()});
  expect_gradient("scatter_add_rows", table, dtable, [&] {
    run64(&Ops::gather_rows, GatherRowsArgs{table.tensor(), id_tensor, y.tensor()});
    return dot(y, dy);
  });
  // Rows of the id to skip leave their row of the table as it was.
  const F64 again(4, 3);
  run64(&Ops::scatter_add_rows, ScatterAddRowsArgs{dy.tensor(), id_tensor, again.tensor(), 2});
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(again.at(2, c), 0.0);
    EXPECT_EQ(again.at(0, c), dtable.at(0, c));
  }
}

// ---- value by value ----

constexpr UnaryKind kKinds[] = {UnaryKind::linear,     UnaryKind::relu,       UnaryKind::leaky_relu,
                                UnaryKind::relu2,      UnaryKind::silu,       UnaryKind::gelu_tanh,
                                UnaryKind::gelu_erf,   UnaryKind::tanh,       UnaryKind::sigmoid,
                                UnaryKind::mish,       UnaryKind::softplus,   UnaryKind::elu,
                                UnaryKind::hard_swish, UnaryKind::exp,        UnaryKind::log,
                                UnaryKind::sqrt,       UnaryKind::neg,        UnaryKind::abs,
                                UnaryKind::square,     UnaryKind::reciprocal, UnaryKind::step};

bool takes_output(UnaryKind kind) {
  using enum UnaryKind;
  for (UnaryKind k : {linear, relu, leaky_relu, tanh, sigmoid, exp, sqrt, reciprocal}) {
    if (k == kind) return true;
  }
  return false;
}

TEST(UnaryDx, IsTheGradientOfEveryKind) {
  for (UnaryKind kind : kKinds) {
    const F64 x = F64::random(3, 7, 14, 1), dy = F64::random(3, 7, 15), y(3, 7), dx(3, 7);
    for (int64_t i = 0; i < x.size(); ++i) {
      x[i] *= 4;
      if (kind == UnaryKind::log || kind == UnaryKind::sqrt) x[i] = std::abs(x[i]) + 0.1;
      if (kind == UnaryKind::reciprocal) x[i] += x[i] < 0 ? -0.1 : 0.1;
    }
    const auto forward = [&] {
      run64(&Ops::unary, UnaryArgs{x.tensor(), y.tensor(), kind});
      return dot(y, dy);
    };
    const std::string what = cat("unary_dx kind ", static_cast<int>(kind));
    run64(&Ops::unary_dx, UnaryDxArgs{x.tensor(), dy.tensor(), dx.tensor(), kind, false});
    expect_gradient(what, x, dx, forward);
    if (!takes_output(kind)) continue;
    forward();
    run64(&Ops::unary_dx, UnaryDxArgs{y.tensor(), dy.tensor(), dx.tensor(), kind, true});
    expect_gradient(what + " from output", x, dx, forward);
  }
}

TEST(UnaryDx, TakesTheLeftSideAtAKink) {
  const F64 x(1, 1), dy(1, 1), dx(1, 1);
  dy[0] = 1;
  const auto at_zero = [&](UnaryKind kind, bool from_output) {
    run64(&Ops::unary_dx, UnaryDxArgs{x.tensor(), dy.tensor(), dx.tensor(), kind, from_output});
    return dx[0];
  };
  for (UnaryKind kind : {UnaryKind::relu, UnaryKind::relu2, UnaryKind::abs}) {
    EXPECT_EQ(at_zero(kind, false), 0.0);
  }
  EXPECT_EQ(at_zero(UnaryKind::relu, true), 0.0);
  for (bool from_output : {false, true}) {
    EXPECT_EQ(at_zero(UnaryKind::leaky_relu, from_output), 0.01);
  }
}

TEST(GatedDx, IsTheGradientOfGated) {
  for (int kind = 0; kind <= static_cast<int>(Activation::hard_swish); ++kind) {
    const auto activation = static_cast<Activation>(kind);
    const F64 gate = F64::random(2, 9, 16, 1), up = F64::random(2, 9, 17), y(2, 9);
    const F64 dy = F64::random(2, 9, 18), dgate(2, 9), dup(2, 9, 2);
    const auto forward = [&] {
      run64(&Ops::gated, GatedArgs{gate.tensor(), up.tensor(), y.tensor(), activation});
      return dot(y, dy);
    };
    run64(&Ops::gated_dx, GatedDxArgs{gate.tensor(), up.tensor(), dy.tensor(), dgate.tensor(),
                                      dup.tensor(), activation});
    expect_gradient(cat("dgate ", kind), gate, dgate, forward);
    expect_gradient(cat("dup ", kind), up, dup, forward);
  }
}

// ---- row by row ----

void expect_norm_gradient(NormKind kind, int64_t segments, int64_t gammas) {
  const int64_t cols = 12;
  const F64 x = F64::random(3, cols, 19, 2), dy = F64::random(3, cols, 20), y(3, cols);
  const F64 gamma = F64::random(1, std::max<int64_t>(gammas, 1), 22), dgamma(1, gamma.cols());
  const F64 dx(3, cols), scaled(3, cols, 1);
  NormArgs forward;
  forward.x = x.tensor(), forward.y = y.tensor();
  forward.kind = kind, forward.segments = segments;
  NormDxArgs args;
  args.x = x.tensor(), args.dy = dy.tensor(), args.dx = dx.tensor(), args.scaled = scaled.tensor();
  args.kind = kind, args.segments = segments;
  if (gammas > 0) forward.gamma = args.gamma = gamma.vector();
  const auto objective = [&] {
    run64(&Ops::norm, forward);
    return dot(y, dy);
  };
  run64(&Ops::norm_dx, args);
  const std::string what = cat("norm kind ", static_cast<int>(kind), ", ", segments, " segments");
  expect_gradient(what + ", dx", x, dx, objective);
  if (gammas == 0) return;
  for (int64_t i = 0; i < scaled.size(); ++i) dgamma[i % cols % gammas] += scaled[i];
  expect_gradient(what + ", dgamma", gamma, dgamma, objective);
}

TEST(NormDx, IsTheGradientOfNorm) {
  for (NormKind kind : {NormKind::rms, NormKind::layer}) {
    expect_norm_gradient(kind, 1, 0);
    expect_norm_gradient(kind, 1, 12);
    expect_norm_gradient(kind, 3, 4);
    expect_norm_gradient(kind, 3, 12);
  }
}

TEST(SoftmaxDx, IsTheGradientOfSoftmax) {
  const F64 x = F64::random(3, 40, 23, 1), dy = F64::random(3, 40, 24), y(3, 40), dx(3, 40);
  const auto forward = [&] {
    run64(&Ops::softmax, SoftmaxArgs{x.tensor(), y.tensor(), 1.5f});
    return dot(y, dy);
  };
  forward();
  run64(&Ops::softmax_dx, SoftmaxDxArgs{y.tensor(), dy.tensor(), dx.tensor(), 1.5f});
  expect_gradient("softmax_dx", x, dx, forward);
}

TEST(EntmaxDx, IsTheGradientOfEntmax) {
  for (float alpha : {1.25f, 1.5f, 1.75f, 2.0f}) {
    const F64 x = F64::random(4, 9, 25, 1), dy = F64::random(4, 9, 26), y(4, 9), dx(4, 9);
    const auto forward = [&] {
      run64(&Ops::entmax, EntmaxArgs{x.tensor(), y.tensor(), 1.5f, alpha});
      return dot(y, dy);
    };
    forward();
    run64(&Ops::entmax_dx, EntmaxDxArgs{y.tensor(), dy.tensor(), dx.tensor(), 1.5f, alpha});
    expect_gradient(cat("entmax_dx ", alpha), x, dx, forward);
  }
}

// With weights 1e20, 2 and 2, `dy - mean` has no correct digit at the first.
TEST(EntmaxDx, AboveTwoKeepsTheGradientOfAValueNearZero) {
  for (int64_t at = 0; at < 3; ++at) {
    const F64 y(1, 3), dy(1, 3), dx(1, 3);
    for (int64_t i = 0; i < 3; ++i) y[i] = 0.5, dy[i] = i == (at + 1) % 3 ? 2 : 4;
    y[at] = 1e-20, dy[at] = 1;
    run64(&Ops::entmax_dx, EntmaxDxArgs{y.tensor(), dy.tensor(), dx.tensor(), 1.0f, 3.0f});
    for (int64_t i = 0; i < 3; ++i) expect_close("dx", dx[i], i == at ? -8 : 2 * (dy[i] - 1));
  }
}

// ---- in place ----

// An op whose dx overwrites dy gives the same result as one with memory of its own.
TEST(Gradients, MayStandWhereDyStood) {
  const F64 x = F64::random(3, 40, 27), y = F64::random(3, 40, 28), fresh(3, 40);
  const F64 dy = F64::random(3, 40, 29);
  const auto expect_same = [&](auto op, auto args) {
    const F64 mine = F64::random(3, 40, 29);
    args.dy = dy.tensor(), args.dx = fresh.tensor();
    run64(op, args);
    args.dy = args.dx = mine.tensor();
    run64(op, args);
    for (int64_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i], fresh[i]);
  };
  NormDxArgs norm;
  norm.x = x.tensor(), norm.kind = NormKind::layer;
  expect_same(&Ops::norm_dx, norm);
  expect_same(&Ops::softmax_dx, SoftmaxDxArgs{y.tensor(), {}, {}, 2.0f});
  expect_same(&Ops::entmax_dx, EntmaxDxArgs{y.tensor(), {}, {}, 2.0f, 1.5f});
  expect_same(&Ops::unary_dx, UnaryDxArgs{x.tensor(), {}, {}, UnaryKind::silu, false});
}

}  // namespace
}  // namespace loom::core
