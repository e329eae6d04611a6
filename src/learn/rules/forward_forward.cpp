#include "learn/rules/forward_forward.hpp"

namespace loom::core {
namespace {

class Contrasts {
 public:
  Contrasts(Trace& trace, const Network& network, const TrainStepOptions& options,
            const StepTensors& t)
      : trace_(trace),
        s_(trace),
        network_(network),
        options_(options),
        t_(t),
        batch_(t.network.x.shape[0]) {}

  Result<Contrast> record(const Tensor& dy) {
    const Tensor right = ids(), wrong = ids();
    LOOM_ASSIGN(const Tensor minus, minus_targets(s_, options_, t_, dy));
    LOOM_ASSIGN(const Tensor targets, s_.unary(minus, UnaryKind::neg));
    LOOM_TRY(s_.ops().argmax({targets, right}));
    LOOM_TRY(draw_wrong(dy, targets, wrong));
    LOOM_TRY(pass(right, true));
    LOOM_TRY(pass(wrong, false));
    return std::move(made_);
  }

 private:
  Tensor ids() { return trace_.fresh(Shape{batch_}, DType::i32); }
  Tensor weights() const { return as_matrix(t_.weight, batch_, 1); }

  // The largest of prediction + Gumbel noise is a draw from its softmax; the right label is out.
  Status draw_wrong(const Tensor& dy, const Tensor& targets, const Tensor& wrong) {
    constexpr float kOut = 1e6f;
    const Tensor noise = s_.fresh(dy.shape);
    LOOM_TRY(s_.ops().random({noise, t_.network.step, options_.seed,
                              kSignalStream + (uint64_t{1} << 33), RandomKind::gumbel}));
    const Tensor y = as_matrix(t_.network.y, dy.rows(), dy.cols());
    LOOM_ASSIGN(const Tensor score, s_.binary(y, noise, BinaryKind::add));
    LOOM_ASSIGN(const Tensor half, s_.binary(weights(), 0.5f, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor beyond, s_.binary(targets, half, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor is_right, s_.unary(beyond, UnaryKind::step));
    LOOM_ASSIGN(const Tensor out, s_.binary(is_right, kOut, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor left, s_.binary(score, out, BinaryKind::sub));
    return s_.ops().argmax({left, wrong});
  }

  Status pass(const Tensor& labels, bool right) {
    const Tensor& x = t_.network.x;
    const int64_t numbers = x.shape.count() / batch_;
    const Tensor pattern = s_.fresh(Shape{batch_, numbers});
    LOOM_TRY(s_.ops().gather_rows({t_.plan->labels, labels, pattern}));
    LOOM_ASSIGN(Tensor value, s_.binary(as_matrix(x, batch_, numbers), pattern, BinaryKind::add));
    value.shape = x.shape;
    value.row_stride = x.shape.last();
    size_t begin = 0;
    for (const SignalCut& cut : t_.plan->cuts) {
      LOOM_ASSIGN(value, run_again(trace_, network_, options_, t_, begin, cut.below + 1, value));
      LOOM_TRY(check_whole(trace_, cut, value, options_.rule.kind));
      LOOM_TRY(judge(value, right));
      begin = cut.below + 1;
    }
    return {};
  }

  // dL/dh = +-w sigmoid(+-(G - theta) n / T) 2 h / T, n being the numbers and T the temperature.
  Status judge(const Tensor& output, bool right) {
    const int64_t numbers = output.shape.count() / batch_;
    const Tensor h = as_matrix(output, batch_, numbers);
    const Tensor goodness = s_.fresh(Shape{batch_, 1});
    LOOM_ASSIGN(const Tensor squares, s_.unary(h, UnaryKind::square));
    LOOM_TRY(s_.ops().reduce({squares, vector_of(goodness), ReduceKind::mean}));
    LOOM_ASSIGN(Tensor beyond, s_.binary(goodness, options_.rule.threshold, BinaryKind::sub));
    const float heat = options_.rule.temperature;
    const auto count = static_cast<float>(numbers);
    if (heat > 0) {
      LOOM_ASSIGN(beyond, s_.binary(beyond, count / heat, BinaryKind::mul));
    }
    if (right) {
      LOOM_ASSIGN(beyond, s_.unary(beyond, UnaryKind::neg));
    }
    LOOM_ASSIGN(const Tensor share, s_.unary(beyond, UnaryKind::sigmoid));
    LOOM_ASSIGN(const Tensor weighted, s_.binary(share, weights(), BinaryKind::mul));
    const float slope = (right ? -2.0f : 2.0f) / (heat > 0 ? heat : count);
    LOOM_ASSIGN(const Tensor factor, s_.binary(weighted, slope, BinaryKind::mul));
    LOOM_ASSIGN(Tensor gradient, s_.binary(h, factor, BinaryKind::mul));
    gradient.shape = output.shape;
    gradient.row_stride = output.shape.last();
    made_.outputs.push_back(output);
    made_.gradients.push_back(gradient);
    return {};
  }

  static Tensor vector_of(Tensor column) {
    column.shape = Shape{column.shape.count()};
    column.row_stride = column.shape[0];
    return column;
  }

  Trace& trace_;
  TraceBuilder s_;
  const Network& network_;
  const TrainStepOptions& options_;
  const StepTensors& t_;
  int64_t batch_;
  Contrast made_;
};

}  // namespace

Status Contrast::hand_to(Differentiator& d, const StepTensors& t) const {
  if (t.plan == nullptr) return {};
  for (size_t i = 0; i < outputs.size(); ++i) d.replace(outputs[i], gradients[i]);
  for (const SignalCut& cut : t.plan->cuts) d.block(t.network.outputs[cut.below]);
  return {};
}

Result<Contrast> record_contrast(Trace& trace, const Network& network,
                                 const TrainStepOptions& options, const StepTensors& t,
                                 const Tensor& dy) {
  if (t.plan == nullptr) return Contrast();  // a plan of memory alone
  if (t.targets.empty())
    return invalid("forward-forward needs labels, which a loss of the caller's own does not give");
  return Contrasts(trace, network, options, t).record(dy);
}

}  // namespace loom::core
