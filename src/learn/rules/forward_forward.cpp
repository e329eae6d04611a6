#include "learn/rules/forward_forward.hpp"

#include <cmath>

#include "base/text.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/rules/signal_planner.hpp"

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

namespace {

// The patterns of labels.
Status plan_labels(SignalPlanner& planner) {
  const Network& network = planner.network;
  const TrainStepOptions& options = planner.options;
  const Shape& x = network.input();
  if (!options.loss.has_classes() || !options.class_ids || options.loss.heads.size() > 1)
    return invalid("forward-forward tells right labels from wrong: it is for labels, one head");
  if (takes_ids(network.cells()[0].node.config))
    return planner.refused(0,
                           "takes ids, and forward-forward adds a pattern to numbers; choose dfa");
  if (predictions_of(network).rows() != x[0])
    return invalid("forward-forward needs one prediction per sample");
  if (planner.plan.cuts.empty())
    return invalid("forward-forward needs a layer with parameters in front of the last");
  const int64_t classes = predictions_of(network).last(), numbers = x.count() / x[0];
  if (classes < 2) return invalid("forward-forward needs at least two classes");
  if (classes > kMaxRuleNumbers / numbers)
    return invalid(cat("the patterns of ", classes, " labels are too large"));
  Tensor& labels = planner.plan.labels;
  LOOM_ASSIGN(labels, planner.random(Shape{classes, numbers}, network.cells().size()));
  const float scale = options.rule.label_scale * std::sqrt(static_cast<float>(classes));
  for (int64_t i = 0; i < classes * numbers; ++i) labels.f32()[i] *= scale;
  return {};
}

Result<Contrast> contrast(Trace& trace, const Network& network, const TrainStepOptions& options,
                          const StepTensors& t, const Tensor& dy) {
  if (t.plan == nullptr) return Contrast();  // a plan of memory alone
  if (t.targets.empty())
    return invalid("forward-forward needs labels, which a loss of the caller's own does not give");
  return Contrasts(trace, network, options, t).record(dy);
}

constexpr RuleOption kOptions[] = {
    {"rule_threshold", &RuleSpec::threshold},
    {"rule_label_scale", &RuleSpec::label_scale},
    {.key = "rule_temperature", .real = &RuleSpec::temperature, .unless_zero = true}};

}  // namespace

extern const RuleDef kForwardForwardRule;
const RuleDef kForwardForwardRule = {
    .options = kOptions, .plan = plan_labels, .contrast = contrast};

}  // namespace loom::core
