// What a training step would take, before anything of it is made.
#include "learn/step_builder.hpp"
#include "learn/train_step.hpp"

namespace loom::core {

Result<int64_t> TrainStep::planned_bytes(const Network& network, const TrainStepOptions& options,
                                         const Ops& ops) {
  Trace trace(DType::f32, true);
  StepTensors t;
  t.hyper = trace.fresh(Shape{4});
  t.report = trace.fresh(Shape{1, 4});
  t.numbers = trace.fresh(Shape{1, 2});
  // What outlives a step has its place in the plan as well.
  std::vector<Trained> trained;
  for (const Param& p : network.params()) {
    Trained& one = trained.emplace_back();
    one.weight = one.master = p.tensor;
    if (p.spec.matrix()) one.master = options.native ? Tensor{} : trace.fresh(p.spec.shape);
    if (options.optimizer.has_m()) one.m = trace.fresh(p.spec.shape);
    if (options.optimizer.has_v()) one.v = trace.fresh(p.spec.shape);
    const bool gathers = options.accumulate > 1 || options.optimizer.lbfgs();
    if (gathers) one.gradient = trace.fresh(p.spec.shape);
  }
  const auto kept = static_cast<size_t>(trace.tensors());
  LOOM_TRY(record_step(trace, network, options, trained, nullptr, t, ops.device != nullptr));
  std::vector<Tensor> persistent;
  for (size_t i = 0; i < kept; ++i) persistent.push_back(trace.tensor(static_cast<int64_t>(i)));
  std::vector<Tensor*> pins = t.pins();
  for (Tensor& p : persistent) pins.push_back(&p);
  const int64_t pairs = 2 * options.optimizer.history;  // of L-BFGS
  const auto commands = static_cast<int64_t>(trace.commands().size() * sizeof(Command));
  return Program::planned_bytes(trace, pins, ops) + commands + pairs * network.param_count() * 4;
}

}  // namespace loom::core
