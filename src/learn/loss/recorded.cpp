#include "learn/loss/recorded.hpp"

namespace loom::core {

Result<Tensor> row_sums(TraceBuilder& s, const Tensor& x) {
  const Tensor sums = s.fresh(Shape{x.rows()});
  LOOM_TRY(s.ops().reduce({x, sums, ReduceKind::sum}));
  return as_matrix(sums, x.rows(), 1);
}

Result<LossSeed> weighted_rows(TraceBuilder& s, const LossTensors& t, const Tensor& each) {
  const int64_t n = each.rows();
  const Tensor gradient = s.fresh(Shape{n, 1});
  const Tensor weight = as_matrix(t.weight, n, 1);
  LOOM_TRY(s.ops().unary({weight, gradient}));
  LOOM_TRY(s.ops().binary({each, weight, as_matrix(t.rows, n, 1), BinaryKind::mul}));
  return LossSeed{each, gradient};
}

Result<PairRows> PairRows::create(TraceBuilder& s, const LossTensors& t) {
  PairRows pairs(s, t);
  LOOM_ASSIGN(pairs.same, s.unary(t.target, UnaryKind::relu));
  LOOM_ASSIGN(const Tensor minus, s.unary(t.target, UnaryKind::neg));
  LOOM_ASSIGN(pairs.other, s.unary(minus, UnaryKind::relu));
  return pairs;
}

Result<Tensor> PairRows::at_least_one(const Tensor& x) {
  LOOM_ASSIGN(const Tensor sums, row_sums(s, x));
  return s.binary(sums, 1.0f, BinaryKind::max);
}

// A pooling whose one window is the row.
Result<Tensor> PairRows::row_maxima(const Tensor& x) {
  PoolArgs pool;
  pool.x = x;
  pool.y = s.fresh(Shape{x.rows(), 1});
  pool.shape.channels = pool.shape.filters = pool.shape.groups = 1;
  pool.shape.in[2] = pool.shape.kernel[2] = x.cols();
  LOOM_TRY(s.ops().pool(pool));
  return pool.y;
}

// |i|^2 + |j|^2 - 2 i j of rows from which their mean is taken, so that little is cancelled.
Result<Tensor> PairRows::squared_distances() {
  const Tensor sums = s.fresh(Shape{y.cols()}), products = s.fresh(square());
  LOOM_TRY(s.ops().reduce_cols({y, sums}));
  LOOM_ASSIGN(const Tensor mean, s.binary(as_matrix(sums, 1, y.cols()),
                                          1.0f / static_cast<float>(rows()), BinaryKind::mul));
  LOOM_ASSIGN(const Tensor x, s.binary(y, mean, BinaryKind::sub));
  LOOM_TRY(s.ops().gemm({x, x, products, false, true}));
  const Tensor squares = s.fresh(Shape{rows()});
  LOOM_TRY(s.ops().reduce({x, squares, ReduceKind::sum_squares}));
  LOOM_ASSIGN(const Tensor twice, s.binary(products, -2.0f, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor by_row, s.binary(twice, as_matrix(squares, rows(), 1), BinaryKind::add));
  LOOM_ASSIGN(const Tensor both, s.binary(by_row, as_matrix(squares, 1, rows()), BinaryKind::add));
  return s.unary(both, UnaryKind::relu);
}

Result<Tensor> PairRows::root(const Tensor& squares) {
  LOOM_ASSIGN(const Tensor above, s.binary(squares, kMinSquare, BinaryKind::add));
  return s.unary(above, UnaryKind::sqrt);
}

}  // namespace loom::core
