// Ops that recorded losses share (LossDef::record). Private to the room.
#pragma once

#include "layers/core/layer.hpp"
#include "learn/loss/loss.hpp"
#include "learn/scribe.hpp"

namespace loom::core {

// [R, 1]: the sum of each row.
Result<Tensor> row_sums(TraceBuilder& s, const Tensor& x);

// For losses of pairs: rows of a batch, compared with each other. R rows of N values.
class PairRows {
 public:
  static Result<PairRows> create(TraceBuilder& s, const LossTensors& t);

  Shape square() const { return Shape{rows(), rows()}; }
  int64_t rows() const { return y.rows(); }

  // [R, 1]: the sum of each row, 1 if it is less.
  Result<Tensor> at_least_one(const Tensor& x);
  // The largest value of each row.
  Result<Tensor> row_maxima(const Tensor& x);
  // [R, R]: squares of the Euclidean distances, and the distances.
  Result<Tensor> squared_distances();
  Result<Tensor> root(const Tensor& squares);

  TraceBuilder& s;
  Tensor y, relation;
  Tensor same, other;  // [R, R]: 1 if the relation is 1, and if it is -1; else 0

 private:
  PairRows(TraceBuilder& builder, const LossTensors& t)
      : s(builder), y(as_matrix(t.y, t.y.rows(), t.y.cols())), relation(t.target) {}
};
constexpr float kMinSquare = 1e-12f;  // below any square that counts, and far from 0 / 0
constexpr float kBeyondAll = 1e30f;   // beyond every distance and every logit

}  // namespace loom::core
