// What a training step would take, before anything of it is made.
#include "learn/hyper.hpp"
#include "learn/kfac.hpp"
#include "learn/layerwise.hpp"
#include "learn/sophia.hpp"
#include "learn/step_builder.hpp"
#include "learn/train_step.hpp"
#include "ops/program.hpp"

namespace loom::core {

Result<int64_t> TrainStep::planned_bytes(const Network& network, const TrainStepOptions& options,
                                         const Ops& ops) {
  Trace trace(DType::f32, true);
  StepTensors t;
  LOOM_ASSIGN(const std::vector<ParamRule> rules, resolve_rules(options.rules, network));
  t.hyper = trace.fresh(Shape{HyperNumbers(options.optimizer, {}).rows(), 4});
  t.report = trace.fresh(Shape{1, 4});
  t.numbers = trace.fresh(Shape{1, 3});
  // What outlives a step has its place in the plan as well.
  std::vector<Trained> trained;
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& p = network.params()[i];
    if (!p.spec.trained) continue;
    Trained& one = trained.emplace_back();
    one.weight = one.master = p.tensor;
    if (p.spec.matrix()) one.master = options.native ? Tensor{} : trace.fresh(p.spec.shape);
    one.frozen = rules[i].frozen;
    if (one.frozen) continue;
    const Moments moments = moments_of(options.optimizer, p.spec.shape);
    if (moments.m) one.m = trace.fresh(*moments.m);
    if (moments.v) one.v = trace.fresh(*moments.v);
    if (options.gathers()) one.gradient = trace.fresh(p.spec.shape);
  }
  const auto kept = static_cast<size_t>(trace.tensors());
  LOOM_TRY(record_step(trace, network, options, trained, nullptr, t, ops.device != nullptr));
  LOOM_TRY(trace.named());
  std::vector<Tensor> persistent;
  for (size_t i = 0; i < kept; ++i) persistent.push_back(trace.tensor(static_cast<int64_t>(i)));
  std::vector<Tensor*> pins = t.pins();
  for (Tensor& p : persistent) pins.push_back(&p);
  // Pairs of L-BFGS; averages, what they replace while they are shown, and slow weights.
  const int64_t pairs = 2 * options.optimizer.history + (options.average.any() ? 2 : 0) +
                        (options.lookahead.every > 0 ? 1 : 0);
  int64_t factors = 0;
  if (options.optimizer.kfac()) {
    LOOM_ASSIGN(factors, Kfac::planned_bytes(network, options));
  }
  if (options.optimizer.sophia()) {
    Trace drawn(DType::f32, true);
    StepTensors tensors;
    tensors.numbers = drawn.fresh(Shape{1, 3});
    std::vector<Trained> held = trained;
    for (Trained& one : held) {
      if (!one.v.empty()) one.v = drawn.fresh(one.v.shape);
    }
    LOOM_TRY(record_curvature(drawn, network, options, held, nullptr, tensors));
    LOOM_TRY(drawn.named());
    factors = Program::planned_bytes(drawn, {}, ops);
  }
  const auto commands = static_cast<int64_t>(trace.commands().size() * sizeof(Command));
  return Program::planned_bytes(trace, pins, ops) + commands + factors +
         pairs * network.param_count() * 4;
}

}  // namespace loom::core
