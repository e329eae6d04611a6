// Sophia-G (Liu et al., 2023, "Sophia: A Scalable Stochastic Second-order Optimizer"). With wd the
// decay: m = b1 m + (1 - b1) g; p -= lr (wd p + u), u = m / max(gamma v, eps) kept within -1 and 1,
// value by value; v is the curvature. Every so many updates a second backward pass, of targets that
// are drawn from the prediction of the same batch (Gauss-Newton-Bartlett), estimates it: the
// squares are the diagonal of the Gauss-Newton matrix.
//
// With g the gradient of the sum of weight x loss over the rows for drawn targets: h = g^2 / sum of
// weight^2, which of B rows of weight 1 / B is their B g^2; v += (1 - beta2) (h - v). Targets are
// drawn by the counter-based random numbers of the step, so a run that goes on has the same ones.
#include <cstring>

#include "base/text.hpp"
#include "learn/loss/loss.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/drawn_targets.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/rule.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

Status check_sophia(const TrainStepOptions& o) {
  if (o.forward) return invalid("sophia is not for meshes; choose adamw");
  if (loss_def(o.loss.kind).likelihood == Likelihood::none)
    return invalid(cat("sophia draws targets from predictions of softmax_ce and mse, not of ",
                       loss_name(o.loss.kind), "; choose another optimizer"));
  if (!rule_def(o.rule.kind).end_to_end)
    return invalid(cat("sophia does not go with the rule ", rule_name(o.rule.kind),
                       "; choose another optimizer"));
  if (*o.optimizer.inverse_every < 1)
    return invalid(cat("sophia estimates its curvature every ", *o.optimizer.inverse_every,
                       " updates, must be at least 1"));
  if (!(*o.optimizer.gamma > 0))
    return invalid(cat("the gamma of sophia is ", *o.optimizer.gamma, ", must be above 0"));
  return {};
}

// v += share (g^2 / squares - v), nothing where g is not finite. rows: of a sparse gradient.
Status move_curvature(TraceBuilder& s, const Tensor& numbers, const Trained& p,
                      const Tensor& gradient, const Tensor& rows, const Tensor& squares,
                      float share) {
  Tensor g = gradient;
  if (!rows.empty()) {
    g = s.fresh(p.v.shape);
    LOOM_TRY(s.ops().fill({g, 0.0f}));
    LOOM_TRY(s.ops().scatter_add_rows({gradient, rows, g, -1}));
  }
  g.shape = p.v.shape;  // gradients of vectors may be a row
  g.row_stride = p.v.shape.last();
  LOOM_ASSIGN(const Tensor square, s.binary(g, g, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor estimate, s.binary(square, squares, BinaryKind::div));
  OptimizeArgs o;
  o.p = p.v;
  LOOM_ASSIGN(o.g, s.binary(p.v, estimate, BinaryKind::sub));
  const Tensor all = s.fresh(Shape{1, 1}), rate = s.fresh(Shape{4});
  LOOM_TRY(s.sum_of_squares(g, all));
  o.scale = s.fresh(Shape{1, 1});
  LOOM_TRY(s.guard(numbers, all, o.scale));
  LOOM_TRY(s.ops().fill({rate, share}));
  o.hyper = rate;
  return s.ops().optimize(o);
}

// Forward pass, draw, backward pass, and the move of Trained::v, of all that is not frozen.
Status record_curvature(Trace& trace, const Network& network, const TrainStepOptions& options,
                        const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                        StepTensors& t) {
  TraceOptions o = traced_as_in_steps(options);
  o.feedback = feedback;
  LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  t.network.y = predictions_of(t.network.y);
  TraceBuilder s(trace);
  Differentiator d(trace);
  const Tensor dy = s.fresh(Shape{t.network.y.rows(), t.network.y.cols()});
  t.weight = s.fresh(Shape{dy.rows()});
  // Only the number of targets matters: it is the number of heads.
  t.targets.resize(std::max<size_t>(options.loss.heads.size(), 1));
  LOOM_ASSIGN(const Tensor drawn, drawn_gradient(trace, s, options, t, dy));
  for (const Trained& p : trained) {
    if (!p.frozen) d.want(p.weight);
  }
  d.seed(t.network.y, drawn);
  LOOM_TRY(d.run());
  const Tensor sum = s.fresh(Shape{1, 1});
  LOOM_TRY(s.ops().reduce({as_matrix(t.weight, 1, dy.rows()), sum, ReduceKind::sum_squares}));
  LOOM_ASSIGN(const Tensor squares, s.binary(sum, 1e-30f, BinaryKind::max));
  for (const Trained& p : trained) {
    const Tensor g = p.frozen ? Tensor{} : d.gradient(p.weight);
    if (g.empty()) continue;
    LOOM_TRY(move_curvature(s, t.numbers, p, g, d.rows(p.weight), squares,
                            1.0f - *options.optimizer.beta2));
  }
  return {};
}

class Sophia : public OptimizerDriver {
 public:
  explicit Sophia(const DriverCall& call)
      : network_(call.network),
        options_(call.options),
        trained_(call.trained),
        ops_(call.ops),
        pool_(call.pool) {}

  static Result<std::unique_ptr<OptimizerDriver>> create(const DriverCall& call) {
    return std::unique_ptr<OptimizerDriver>(std::make_unique<Sophia>(call));
  }
  static Result<int64_t> planned_bytes(const Network& network, const TrainStepOptions& options,
                                       const std::vector<Trained>& trained, const Ops& ops);

  Status make_programs(const StepTensors& t, const FeedbackMemory& feedback) override;
  Status before_step(const StepTensors& t, int64_t updates) override;
  int64_t arena_bytes() const override { return program_->arena_bytes(); }

 private:
  const Network& network_;
  const TrainStepOptions& options_;
  const std::vector<Trained>& trained_;
  const Ops& ops_;
  ThreadPool& pool_;
  std::unique_ptr<Program> program_;
  StepTensors drawn_;
};

Result<int64_t> Sophia::planned_bytes(const Network& network, const TrainStepOptions& options,
                                      const std::vector<Trained>& trained, const Ops& ops) {
  Trace trace(DType::f32, true);
  StepTensors tensors;
  tensors.numbers = trace.fresh(Shape{1, 3});
  std::vector<Trained> held = trained;
  for (Trained& one : held) {
    if (!one.v.empty()) one.v = trace.fresh(one.v.shape);
  }
  LOOM_TRY(record_curvature(trace, network, options, held, nullptr, tensors));
  LOOM_TRY(trace.named());
  return Program::planned_bytes(trace, {}, ops);
}

Status Sophia::make_programs(const StepTensors& t, const FeedbackMemory& feedback) {
  drawn_ = {};
  drawn_.numbers = t.numbers;
  Trace trace(DType::f32, true);
  LOOM_TRY(record_curvature(trace, network_, options_, trained_, tensors_of(feedback), drawn_));
  TracedNetwork& n = drawn_.network;
  std::vector<Tensor*> pins = {&n.x, &n.step, &drawn_.weight};
  if (!n.mask.empty()) pins.insert(pins.end(), {&n.mask, &n.ends.last, &n.ends.reversed});
  if (!n.present.empty()) pins.push_back(&n.present);
  for (Tensor& more : n.more) pins.push_back(&more);
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops_, pool_));
  program_ = std::make_unique<Program>(std::move(program));
  return {};
}

// The batch of the step goes through the recording of the curvature.
Status Sophia::before_step(const StepTensors& t, int64_t updates) {
  if (updates % *options_.optimizer.inverse_every != 0) return {};
  const auto copy = [](const Tensor& from, const Tensor& to) {
    if (to.empty()) return;
    std::memcpy(to.data, from.data, static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
  };
  copy(t.network.x, drawn_.network.x);
  copy(t.network.step, drawn_.network.step);
  copy(t.network.mask, drawn_.network.mask);
  copy(t.network.ends.last, drawn_.network.ends.last);
  copy(t.network.ends.reversed, drawn_.network.ends.reversed);
  copy(t.network.present, drawn_.network.present);
  copy(t.weight, drawn_.weight);
  for (size_t i = 0; i < drawn_.network.more.size(); ++i)
    copy(t.network.more[i], drawn_.network.more[i]);
  return program_->run();
}

Status sophia_step(WholeUpdate& u) {
  auto& s = u.s;
  LOOM_ASSIGN(const Tensor g, u.scaled_gradient());
  LOOM_TRY(u.average(g));
  LOOM_ASSIGN(const Tensor curved, s.binary(u.v, *u.constants.gamma, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor positive, s.binary(curved, *u.constants.eps, BinaryKind::max));
  LOOM_ASSIGN(const Tensor ratio, s.binary(u.m, positive, BinaryKind::div));
  LOOM_ASSIGN(const Tensor below, s.binary(ratio, 1.0f, BinaryKind::min));
  LOOM_ASSIGN(const Tensor update, s.binary(below, -1.0f, BinaryKind::max));
  return u.move(u.p, update, u.rate(), u.finite, *u.constants.weight_decay);
}

constexpr SavedConstant kSavedOfSophia[] = {
    {.key = "gamma_sophia", .real = &Optimizer::gamma},
    {.key = "curvature_every", .count = &Optimizer::inverse_every}};

}  // namespace

extern const OptimizerDef kSophiaOptimizer;
const OptimizerDef kSophiaOptimizer = {
    .update = UpdateKind::adamw,
    .usual = {.beta1 = 0.96f, .beta2 = 0.99f, .eps = 1e-12f, .weight_decay = 0.1f},
    .step = sophia_step,
    .driver = Sophia::create,
    .driver_bytes = Sophia::planned_bytes,
    .targets_drawn = true,
    .check = check_sophia,
    .saved = kSavedOfSophia};

}  // namespace loom::core
