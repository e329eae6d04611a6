// Softmax over cosines with the other rows of a batch. s is the cosine and T the temperature. p are
// the rows of its label, and a are all others. The loss of a row is the mean over p of -log(e^(s(p)
// / T) / the sum of e^(s(a) / T)). With one p it is NT-Xent (Chen et al., 2020), with more the
// supervised loss "out" (Khosla et al., 2020).
#include "learn/loss/recorded.hpp"

namespace loom::core {
namespace {

#ifdef LOOM_WITHOUT_TRAINING
constexpr RecordLoss record_infonce = nullptr;
#else
// Cosines over the temperature, and the shares of the rows of one label: inputs of softmax_ce.
Status record_logits(PairRows& pairs, float temperature, Tensor& logits, Tensor& shares) {
  TraceBuilder& s = pairs.s;
  const Tensor unit = s.fresh(pairs.y.shape), cosines = s.fresh(pairs.square());
  NormArgs norm;  // rows of the length sqrt(N)
  norm.x = pairs.y;
  norm.y = unit;
  norm.eps = kMinSquare;
  LOOM_TRY(s.ops().norm(norm));
  LOOM_TRY(s.ops().gemm({unit, unit, cosines, false, true}));
  const auto length = static_cast<float>(pairs.y.cols());
  LOOM_ASSIGN(const Tensor one, s.binary(cosines, length, BinaryKind::div));
  LOOM_ASSIGN(const Tensor scaled, s.binary(one, temperature, BinaryKind::div));
  LOOM_ASSIGN(const Tensor related, s.unary(pairs.relation, UnaryKind::abs));
  LOOM_ASSIGN(const Tensor less, s.binary(related, 1.0f, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor away, s.binary(less, kBeyondAll, BinaryKind::mul));
  LOOM_ASSIGN(logits, s.binary(scaled, away, BinaryKind::add));
  LOOM_ASSIGN(const Tensor count, pairs.at_least_one(pairs.same));
  LOOM_ASSIGN(shares, s.binary(pairs.same, count, BinaryKind::div));
  return {};
}

Result<LossSeed> record_infonce(TraceBuilder& s, const LossSpec& loss, const LossTensors& t) {
  LOOM_ASSIGN(PairRows pairs, PairRows::create(s, t));
  LossArgs cross;
  cross.kind = LossKind::softmax_ce;
  LOOM_TRY(record_logits(pairs, loss.temperature, cross.pred, cross.target));
  cross.weight = t.weight;
  cross.row_loss = t.rows;
  cross.dpred = s.fresh(cross.pred.shape);
  LOOM_TRY(s.ops().loss(cross));
  return LossSeed{cross.pred, cross.dpred};
}
#endif

constexpr LossOption kInfonceOptions[] = {
    {.key = "temperature", .real = &LossSpec::temperature, .positive = true},
    {.key = "across", .flag = &LossSpec::cross_view_only}};

}  // namespace

extern const LossDef kInfonceLoss;
const LossDef kInfonceLoss = {.record = record_infonce,
                              .form = LossForm::pairs,
                              .by_angle = true,
                              .options = kInfonceOptions};

}  // namespace loom::core
