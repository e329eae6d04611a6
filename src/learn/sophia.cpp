#include "learn/sophia.hpp"

#include <cstring>

#include "base/text.hpp"
#include "learn/kfac.hpp"
#include "learn/predictions.hpp"
#include "learn/scribe.hpp"
#include "learn/train_step_impl.hpp"
#include "ops/program.hpp"

namespace loom::core {

Status check_sophia(const TrainStepOptions& o) {
  if (!o.optimizer.sophia()) return {};
  if (o.forward) return invalid("sophia is not for meshes; choose adamw");
  if (o.loss.kind != LossKind::softmax_ce && o.loss.kind != LossKind::mse)
    return invalid(cat("sophia draws targets from predictions of softmax_ce and mse, not of ",
                       loss_name(o.loss.kind), "; choose another optimizer"));
  if (o.rule.kind != Rule::back_propagation)
    return invalid(cat("sophia does not go with the rule ", rule_name(o.rule.kind),
                       "; choose another optimizer"));
  if (o.optimizer.curvature.every < 1)
    return invalid(cat("sophia estimates its curvature every ", o.optimizer.curvature.every,
                       " updates, must be at least 1"));
  if (!(o.optimizer.curvature.gamma > 0))
    return invalid(
        cat("the gamma of sophia is ", o.optimizer.curvature.gamma, ", must be above 0"));
  return {};
}

namespace {

// v += share (g^2 / squares - v), nothing where g is not finite. rows: of a sparse gradient.
Status move_curvature(Scribe& s, const Tensor& numbers, const Trained& p, const Tensor& gradient,
                      const Tensor& rows, const Tensor& squares, float share) {
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

}  // namespace

Status record_curvature(Trace& trace, const Network& network, const TrainStepOptions& options,
                        const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                        StepTensors& t) {
  TraceOptions o = traced_as_in_steps(options);
  o.feedback = feedback;
  LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  t.network.y = predictions_of(t.network.y);
  Scribe s(trace);
  Differentiator d(trace);
  const Tensor dy = s.fresh(Shape{t.network.y.rows(), t.network.y.cols()});
  t.weight = s.fresh(Shape{dy.rows()});
  // Of the targets only their number says something: how many heads there are.
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
                            1.0f - options.optimizer.beta2));
  }
  return {};
}

Status TrainStep::Impl::make_curvature() {
  curvature.reset();
  if (!options.optimizer.sophia()) return {};
  drawn = {};
  drawn.numbers = tensors.numbers;
  Trace trace(DType::f32, true);
  LOOM_TRY(record_curvature(trace, *network, options, trained, tensors_of(feedback), drawn));
  TracedNetwork& n = drawn.network;
  std::vector<Tensor*> pins = {&n.x, &n.step, &drawn.weight};
  if (!n.mask.empty()) pins.insert(pins.end(), {&n.mask, &n.ends.last, &n.ends.turned});
  if (!n.present.empty()) pins.push_back(&n.present);
  for (Tensor& more : n.more) pins.push_back(&more);
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, *ops, *pool));
  curvature = std::make_unique<Program>(std::move(program));
  return {};
}

// Before the first batch of every so many updates: the batch of the step, through the recording of
// the curvature.
Status TrainStep::Impl::estimate_curvature() {
  if (curvature == nullptr || batches > 0 || updates % options.optimizer.curvature.every != 0)
    return {};
  const auto copy = [](const Tensor& from, const Tensor& to) {
    if (to.empty()) return;
    std::memcpy(to.data, from.data, static_cast<size_t>(plain_bytes(to.dtype, to.shape)));
  };
  copy(tensors.network.x, drawn.network.x);
  copy(tensors.network.step, drawn.network.step);
  copy(tensors.network.mask, drawn.network.mask);
  copy(tensors.network.ends.last, drawn.network.ends.last);
  copy(tensors.network.ends.turned, drawn.network.ends.turned);
  copy(tensors.network.present, drawn.network.present);
  copy(tensors.weight, drawn.weight);
  for (size_t i = 0; i < drawn.network.more.size(); ++i)
    copy(tensors.network.more[i], drawn.network.more[i]);
  return curvature->run();
}

}  // namespace loom::core
