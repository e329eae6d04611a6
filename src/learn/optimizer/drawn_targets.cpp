#include "learn/optimizer/drawn_targets.hpp"

#include <cmath>

#include "learn/loss/loss.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kFisherStream = uint64_t{1} << 52;

}  // namespace

Result<Tensor> drawn_gradient(Trace& trace, TraceBuilder& s, const TrainStepOptions& options,
                              const StepTensors& t, const Tensor& dy) {
  const bool known = !options.custom_loss && !t.targets.empty();
  const Likelihood likelihood = loss_def(options.loss.kind).likelihood;
  if (!known || likelihood == Likelihood::none) return dy;
  const Tensor noise = s.fresh(dy.shape), drawn = s.fresh(dy.shape);
  const bool classes = likelihood == Likelihood::categorical;
  LOOM_TRY(s.ops().random({noise, t.network.step, options.seed, kFisherStream,
                           classes ? RandomKind::gumbel : RandomKind::normal}));
  if (!classes) {
    const float size = std::sqrt(2.0f / static_cast<float>(dy.cols()));
    LOOM_ASSIGN(const Tensor scaled, s.binary(noise, size, BinaryKind::mul));
    return s.binary(scaled, as_matrix(t.weight, dy.rows(), 1), BinaryKind::mul);
  }
  const Tensor y = as_matrix(t.network.y, dy.rows(), dy.cols());
  LOOM_ASSIGN(const Tensor score, s.binary(y, noise, BinaryKind::add));
  int64_t first = 0;
  for (size_t head = 0; head < t.targets.size(); ++head) {
    const int64_t width = t.targets.size() > 1 ? options.loss.heads[head] : dy.cols();
    const Tensor ids = trace.fresh(Shape{dy.rows()}, DType::i32);
    LOOM_TRY(s.ops().argmax({slice_cols(score, first, width), ids}));
    LossArgs loss;
    loss.pred = slice_cols(y, first, width);
    loss.target = ids;
    loss.weight = t.weight;
    loss.dpred = slice_cols(drawn, first, width);
    loss.kind = LossKind::softmax_ce;
    LOOM_TRY(s.ops().loss(loss));
    first += width;
  }
  return drawn;
}

}  // namespace loom::core
