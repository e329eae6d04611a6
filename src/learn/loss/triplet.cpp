// The distance to rows of the same label is below that to others, by a margin (Hermans et al.,
// 2017). d is the Euclidean distance, P are the rows of the label and N the others. The loss of a
// row is max(0, margin + max over P of d - min over N of d). With all_triplets it is the mean over
// all p of P and n of N of max(0, margin + d(p) - d(n)).
#include "learn/loss/recorded.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

#ifdef LOOM_WITHOUT_TRAINING
constexpr RecordLoss record_triplet = nullptr;
#else
Result<Tensor> hardest_triplet(PairRows& pairs, float margin) {
  TraceBuilder& s = pairs.s;
  LOOM_ASSIGN(const Tensor squares, pairs.squared_distances());
  LOOM_ASSIGN(const Tensor distances, pairs.root(squares));
  LOOM_ASSIGN(const Tensor meant, s.binary(distances, pairs.same, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor farthest, pairs.row_maxima(meant));
  LOOM_ASSIGN(const Tensor less, s.binary(pairs.other, 1.0f, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor away, s.binary(less, kBeyondAll, BinaryKind::mul));
  // The nearest of the others has the largest negated distance.
  LOOM_ASSIGN(const Tensor negated, s.binary(away, distances, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor nearest, pairs.row_maxima(negated));
  LOOM_ASSIGN(const Tensor gap, s.binary(farthest, nearest, BinaryKind::add));
  LOOM_ASSIGN(const Tensor beyond, s.binary(gap, margin, BinaryKind::add));
  return s.unary(beyond, UnaryKind::relu);
}

// x [R, R] with each row repeated R times: row i R + p is row i of x.
Result<Tensor> repeated_rows(TraceBuilder& s, const Tensor& x) {
  const int64_t n = x.rows();
  const Tensor y = s.fresh(Shape{n * n, n});
  const int64_t from[] = {n, 1, n}, to[] = {n, n, n};
  LOOM_TRY(s.ops().copy(expand(x, from, y, to)));
  return y;
}

Result<Tensor> all_triplets(PairRows& pairs, float margin) {
  TraceBuilder& s = pairs.s;
  LOOM_ASSIGN(const Tensor squares, pairs.squared_distances());
  LOOM_ASSIGN(const Tensor distances, pairs.root(squares));
  const int64_t n = pairs.rows();
  LOOM_ASSIGN(const Tensor to_others, repeated_rows(s, distances));
  LOOM_ASSIGN(const Tensor minus, s.unary(to_others, UnaryKind::neg));
  LOOM_ASSIGN(const Tensor gap, s.binary(minus, as_matrix(distances, n * n, 1), BinaryKind::add));
  LOOM_ASSIGN(const Tensor beyond, s.binary(gap, margin, BinaryKind::add));
  LOOM_ASSIGN(const Tensor hinge, s.unary(beyond, UnaryKind::relu));
  LOOM_ASSIGN(const Tensor others, repeated_rows(s, pairs.other));
  LOOM_ASSIGN(const Tensor meant, s.binary(hinge, others, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sums, row_sums(s, meant));
  LOOM_ASSIGN(const Tensor of_same, s.binary(as_matrix(sums, n, n), pairs.same, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sum, row_sums(s, of_same));
  LOOM_ASSIGN(const Tensor positives, pairs.at_least_one(pairs.same));
  LOOM_ASSIGN(const Tensor negatives, pairs.at_least_one(pairs.other));
  LOOM_ASSIGN(const Tensor count, s.binary(positives, negatives, BinaryKind::mul));
  return s.binary(sum, count, BinaryKind::div);
}

Result<LossSeed> record_triplet(TraceBuilder& s, const LossSpec& loss, const LossTensors& t) {
  LOOM_ASSIGN(PairRows pairs, PairRows::create(s, t));
  LOOM_ASSIGN(const Tensor each, loss.all_triplets ? all_triplets(pairs, loss.margin)
                                                   : hardest_triplet(pairs, loss.margin));
  return weighted_rows(s, t, each);
}
#endif

constexpr LossOption kTripletOptions[] = {
    {.key = "margin", .real = &LossSpec::margin, .positive = true},
    {.key = "all", .flag = &LossSpec::all_triplets},
    {.key = "across", .flag = &LossSpec::cross_view_only}};

}  // namespace

extern const LossDef kTripletLoss;
const LossDef kTripletLoss = {.record = record_triplet,
                              .form = LossForm::pairs,
                              .anchors = Anchors::both,
                              .options = kTripletOptions};

}  // namespace loom::core
