#include "learn/data/pairs.hpp"

#include "base/text.hpp"
#include "learn/step/step_builder.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

constexpr float kMinSquare = 1e-12f;  // below any square that counts, and far from 0 / 0
constexpr float kBeyondAll = 1e30f;   // beyond every distance and every logit

// The recording of one loss. R rows of N values.
class Pairs {
 public:
  Pairs(TraceBuilder& s, const LossSpec& loss, const Tensor& y, const Tensor& relation)
      : s_(s), loss_(loss), y_(as_matrix(y, y.rows(), y.cols())), relation_(relation) {}

  // [R, 1], not weighted.
  Result<Tensor> losses() {
    LOOM_TRY(split());
    if (loss_.kind == kContrastiveLoss) return contrastive();
    return loss_.all_triplets ? all_triplets() : hardest_triplet();
  }

  // Cosines over the temperature, and shares of the rows that are meant: what softmax_ce takes.
  Status scores(Tensor& logits, Tensor& shares) {
    LOOM_TRY(split());
    const Tensor unit = s_.fresh(y_.shape), cosines = s_.fresh(square());
    NormArgs norm;  // rows of the length sqrt(N)
    norm.x = y_;
    norm.y = unit;
    norm.eps = kMinSquare;
    LOOM_TRY(s_.ops().norm(norm));
    LOOM_TRY(s_.ops().gemm({unit, unit, cosines, false, true}));
    const auto length = static_cast<float>(y_.cols());
    LOOM_ASSIGN(const Tensor one, s_.binary(cosines, length, BinaryKind::div));
    LOOM_ASSIGN(const Tensor scaled, s_.binary(one, loss_.temperature, BinaryKind::div));
    LOOM_ASSIGN(const Tensor related, s_.unary(relation_, UnaryKind::abs));
    LOOM_ASSIGN(const Tensor less, s_.binary(related, 1.0f, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor away, s_.binary(less, kBeyondAll, BinaryKind::mul));
    LOOM_ASSIGN(logits, s_.binary(scaled, away, BinaryKind::add));
    LOOM_ASSIGN(const Tensor count, at_least_one(same_));
    LOOM_ASSIGN(shares, s_.binary(same_, count, BinaryKind::div));
    return {};
  }

 private:
  int64_t rows() const { return y_.rows(); }
  Shape square() const { return Shape{rows(), rows()}; }

  Status split() {
    LOOM_ASSIGN(same_, s_.unary(relation_, UnaryKind::relu));
    LOOM_ASSIGN(const Tensor minus, s_.unary(relation_, UnaryKind::neg));
    LOOM_ASSIGN(other_, s_.unary(minus, UnaryKind::relu));
    return {};
  }

  Result<Tensor> row_sums(const Tensor& x) {
    Tensor sums = s_.fresh(Shape{x.rows()});
    LOOM_TRY(s_.ops().reduce({x, sums, ReduceKind::sum}));
    return as_matrix(sums, x.rows(), 1);
  }
  Result<Tensor> at_least_one(const Tensor& x) {
    LOOM_ASSIGN(const Tensor sums, row_sums(x));
    return s_.binary(sums, 1.0f, BinaryKind::max);
  }

  // The largest value of each row, as a pooling whose one window is the row.
  Result<Tensor> row_maxima(const Tensor& x) {
    PoolArgs pool;
    pool.x = x;
    pool.y = s_.fresh(Shape{x.rows(), 1});
    pool.shape.channels = pool.shape.filters = pool.shape.groups = 1;
    pool.shape.in[2] = pool.shape.kernel[2] = x.cols();
    LOOM_TRY(s_.ops().pool(pool));
    return pool.y;
  }

  // |i|^2 + |j|^2 - 2 i j of rows from which their mean is taken, so that little is cancelled.
  Result<Tensor> squared_distances() {
    const Tensor sums = s_.fresh(Shape{y_.cols()}), products = s_.fresh(square());
    LOOM_TRY(s_.ops().reduce_cols({y_, sums}));
    LOOM_ASSIGN(const Tensor mean, s_.binary(as_matrix(sums, 1, y_.cols()),
                                             1.0f / static_cast<float>(rows()), BinaryKind::mul));
    LOOM_ASSIGN(const Tensor x, s_.binary(y_, mean, BinaryKind::sub));
    LOOM_TRY(s_.ops().gemm({x, x, products, false, true}));
    const Tensor squares = s_.fresh(Shape{rows()});
    LOOM_TRY(s_.ops().reduce({x, squares, ReduceKind::sum_squares}));
    LOOM_ASSIGN(const Tensor twice, s_.binary(products, -2.0f, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor by_row,
                s_.binary(twice, as_matrix(squares, rows(), 1), BinaryKind::add));
    LOOM_ASSIGN(const Tensor both,
                s_.binary(by_row, as_matrix(squares, 1, rows()), BinaryKind::add));
    return s_.unary(both, UnaryKind::relu);
  }
  Result<Tensor> root(const Tensor& squares) {
    LOOM_ASSIGN(const Tensor above, s_.binary(squares, kMinSquare, BinaryKind::add));
    return s_.unary(above, UnaryKind::sqrt);
  }

  Result<Tensor> contrastive() {
    LOOM_ASSIGN(const Tensor squares, squared_distances());
    LOOM_ASSIGN(const Tensor distances, root(squares));
    LOOM_ASSIGN(const Tensor near, s_.binary(squares, same_, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor minus, s_.unary(distances, UnaryKind::neg));
    LOOM_ASSIGN(const Tensor left, s_.binary(minus, loss_.margin, BinaryKind::add));
    LOOM_ASSIGN(const Tensor within, s_.unary(left, UnaryKind::relu));
    LOOM_ASSIGN(const Tensor square, s_.unary(within, UnaryKind::square));
    LOOM_ASSIGN(const Tensor far, s_.binary(square, other_, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor each, s_.binary(near, far, BinaryKind::add));
    LOOM_ASSIGN(const Tensor sums, row_sums(each));
    LOOM_ASSIGN(const Tensor related, s_.unary(relation_, UnaryKind::abs));
    LOOM_ASSIGN(const Tensor count, at_least_one(related));
    LOOM_ASSIGN(const Tensor mean, s_.binary(sums, count, BinaryKind::div));
    return s_.binary(mean, 0.5f, BinaryKind::mul);
  }

  Result<Tensor> hardest_triplet() {
    LOOM_ASSIGN(const Tensor squares, squared_distances());
    LOOM_ASSIGN(const Tensor distances, root(squares));
    LOOM_ASSIGN(const Tensor meant, s_.binary(distances, same_, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor farthest, row_maxima(meant));
    LOOM_ASSIGN(const Tensor less, s_.binary(other_, 1.0f, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor away, s_.binary(less, kBeyondAll, BinaryKind::mul));
    // The nearest of the others is the largest of what is turned around.
    LOOM_ASSIGN(const Tensor turned, s_.binary(away, distances, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor nearest, row_maxima(turned));
    LOOM_ASSIGN(const Tensor gap, s_.binary(farthest, nearest, BinaryKind::add));
    LOOM_ASSIGN(const Tensor beyond, s_.binary(gap, loss_.margin, BinaryKind::add));
    return s_.unary(beyond, UnaryKind::relu);
  }

  // x [R, R] with each row repeated R times: row i R + p is row i of x.
  Result<Tensor> repeated(const Tensor& x) {
    const int64_t n = rows();
    const Tensor y = s_.fresh(Shape{n * n, n});
    const int64_t from[] = {n, 1, n}, to[] = {n, n, n};
    LOOM_TRY(s_.ops().copy(expand(x, from, y, to)));
    return y;
  }

  Result<Tensor> all_triplets() {
    LOOM_ASSIGN(const Tensor squares, squared_distances());
    LOOM_ASSIGN(const Tensor distances, root(squares));
    const int64_t n = rows();
    LOOM_ASSIGN(const Tensor to_others, repeated(distances));
    LOOM_ASSIGN(const Tensor minus, s_.unary(to_others, UnaryKind::neg));
    LOOM_ASSIGN(const Tensor gap,
                s_.binary(minus, as_matrix(distances, n * n, 1), BinaryKind::add));
    LOOM_ASSIGN(const Tensor beyond, s_.binary(gap, loss_.margin, BinaryKind::add));
    LOOM_ASSIGN(const Tensor hinge, s_.unary(beyond, UnaryKind::relu));
    LOOM_ASSIGN(const Tensor others, repeated(other_));
    LOOM_ASSIGN(const Tensor meant, s_.binary(hinge, others, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor sums, row_sums(meant));
    LOOM_ASSIGN(const Tensor of_same, s_.binary(as_matrix(sums, n, n), same_, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor sum, row_sums(of_same));
    LOOM_ASSIGN(const Tensor positives, at_least_one(same_));
    LOOM_ASSIGN(const Tensor negatives, at_least_one(other_));
    LOOM_ASSIGN(const Tensor count, s_.binary(positives, negatives, BinaryKind::mul));
    return s_.binary(sum, count, BinaryKind::div);
  }

  TraceBuilder& s_;
  const LossSpec& loss_;
  Tensor y_, relation_;
  Tensor same_, other_;  // 1 where the relation is 1, and where it is -1; else 0
};

}  // namespace

Result<PairSeed> record_pairs(TraceBuilder& s, const LossSpec& loss, const Tensor& y,
                              const Tensor& relation, const Tensor& weight, const Tensor& rows) {
  Pairs pairs(s, loss, y, relation);
  PairSeed seed;
  if (loss.kind == kInfoNceLoss) {
    LossArgs cross;
    cross.kind = LossKind::softmax_ce;
    LOOM_TRY(pairs.scores(cross.pred, cross.target));
    cross.weight = weight;
    cross.row_loss = rows;
    cross.dpred = s.fresh(cross.pred.shape);
    LOOM_TRY(s.ops().loss(cross));
    seed = {cross.pred, cross.dpred};
  } else {
    LOOM_ASSIGN(seed.value, pairs.losses());
    const int64_t n = y.rows();
    seed.gradient = s.fresh(Shape{n, 1});
    const Tensor each = as_matrix(weight, n, 1);
    LOOM_TRY(s.ops().unary({each, seed.gradient}));
    LOOM_TRY(s.ops().binary({seed.value, each, as_matrix(rows, n, 1), BinaryKind::mul}));
  }
  return seed;
}

Status check_pair_options(const LossSpec& loss, const RuleSpec& rule) {
  if (!loss.pairs()) return {};
  const std::string_view name = loss_name(loss.kind);
  if (loss.kind == kInfoNceLoss && !(loss.temperature > 0))
    return invalid(cat("the temperature of infonce is ", loss.temperature, ", must be above 0"));
  if (loss.kind != kInfoNceLoss && !(loss.margin > 0))
    return invalid(cat("the margin of ", name, " is ", loss.margin, ", must be above 0"));
  if (!loss.heads.empty()) return invalid(cat("several heads are for softmax_ce, not for ", name));
  if (rule.stats)
    return invalid(cat("signals of layers are not measured with ", name, "; leave them out"));
  if (rule.kind == Rule::back_propagation) return {};
  return invalid(cat("the rule ", rule_name(rule.kind), " does not go with ", name,
                     ", whose rows have no targets of their own; use back-propagation"));
}

}  // namespace loom::core
