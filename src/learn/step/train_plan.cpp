// The memory of a training step, computed before any of it is made.
#include "learn/optimizer/optimizer.hpp"
#include "learn/step/hyper.hpp"
#include "learn/step/step_builder.hpp"
#include "learn/step/train_step.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

Result<int64_t> TrainStep::planned_bytes(const Network& network, const TrainStepOptions& options,
                                         const Ops& ops) {
  Trace trace(DType::f32, true);
  StepTensors t;
  const OptimizerDef& def = optimizer_def(options.optimizer.kind);
  LOOM_ASSIGN(const std::vector<ParamRule> rules, resolve_rules(options.rules, network));
  t.hyper = trace.fresh(Shape{HyperNumbers(options.optimizer, {}).rows(), 4});
  t.report = trace.fresh(Shape{1, 4});
  t.numbers = trace.fresh(Shape{1, 3});
  // The plan includes tensors that outlive a step.
  std::vector<Trained> trained;
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& p = network.params()[i];
    if (!p.spec.trained) continue;
    Trained& one = trained.emplace_back();
    one.weight = one.master = p.tensor;
    one.frozen = rules[i].frozen;
    const bool master = !options.native && (!one.frozen || options.keep_frozen);
    if (p.spec.matrix()) one.master = master ? trace.fresh(p.spec.shape) : Tensor{};
    if (one.frozen) continue;
    const OptimizerState moments = state_of(def, p.spec.shape);
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
  // Averages, what they replace while they are shown, and slow weights.
  const int64_t copies = (options.average.any() ? 2 : 0) + (options.lookahead.every > 0 ? 1 : 0);
  int64_t driver = 0;
  if (def.driver_bytes != nullptr) {
    TrainStepOptions own = options;
    own.optimizer = resolved(options.optimizer);
    LOOM_ASSIGN(driver, def.driver_bytes(network, own, trained, ops));
  }
  const auto commands = static_cast<int64_t>(trace.commands().size() * sizeof(Command));
  return Program::planned_bytes(trace, pins, ops) + commands + driver +
         copies * network.param_count() * 4;
}

}  // namespace loom::core
