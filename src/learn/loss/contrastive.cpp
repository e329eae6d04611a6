// Pairs of one label are close, others are a margin apart (Hadsell et al., 2006). d is the
// Euclidean distance. The loss of a row is the mean over its pairs: d^2 / 2 for rows of its label
// and max(0, margin - d)^2 / 2 for the others.
#include "learn/loss/recorded.hpp"

namespace loom::core {
namespace {

#ifdef LOOM_WITHOUT_TRAINING
constexpr RecordLoss record_contrastive = nullptr;
#else
Result<LossSeed> record_contrastive(TraceBuilder& s, const LossSpec& loss, const LossTensors& t) {
  LOOM_ASSIGN(PairRows pairs, PairRows::create(s, t));
  LOOM_ASSIGN(const Tensor squares, pairs.squared_distances());
  LOOM_ASSIGN(const Tensor distances, pairs.root(squares));
  LOOM_ASSIGN(const Tensor near, s.binary(squares, pairs.same, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor minus, s.unary(distances, UnaryKind::neg));
  LOOM_ASSIGN(const Tensor left, s.binary(minus, loss.margin, BinaryKind::add));
  LOOM_ASSIGN(const Tensor within, s.unary(left, UnaryKind::relu));
  LOOM_ASSIGN(const Tensor square, s.unary(within, UnaryKind::square));
  LOOM_ASSIGN(const Tensor far, s.binary(square, pairs.other, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor each, s.binary(near, far, BinaryKind::add));
  LOOM_ASSIGN(const Tensor sums, row_sums(s, each));
  LOOM_ASSIGN(const Tensor related, s.unary(pairs.relation, UnaryKind::abs));
  LOOM_ASSIGN(const Tensor count, pairs.at_least_one(related));
  LOOM_ASSIGN(const Tensor mean, s.binary(sums, count, BinaryKind::div));
  LOOM_ASSIGN(const Tensor half, s.binary(mean, 0.5f, BinaryKind::mul));
  return weighted_rows(s, t, half);
}
#endif

constexpr LossOption kContrastiveOptions[] = {
    {.key = "margin", .real = &LossSpec::margin, .positive = true},
    {.key = "across", .flag = &LossSpec::cross_view_only}};

}  // namespace

extern const LossDef kContrastiveLoss;
const LossDef kContrastiveLoss = {.record = record_contrastive,
                                  .form = LossForm::pairs,
                                  .anchors = Anchors::either,
                                  .options = kContrastiveOptions};

}  // namespace loom::core
