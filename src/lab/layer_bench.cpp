#include "lab/layer_bench.hpp"

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "grid/init.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

// Uniform in [-1, 1), as both showdowns of the original fill their inputs.
void fill(const Tensor& t, uint64_t stream, int64_t vocab) {
  const Rng rng(3, stream);
  for (int64_t i = 0; i < t.shape.count(); ++i) {
    const auto index = static_cast<uint64_t>(i);
    if (t.dtype == DType::i32) {
      t.i32()[i] = static_cast<int32_t>(rng.bits(index) % static_cast<uint64_t>(vocab));
    } else {
      t.f32()[i] = 2.0f * rng.uniform(index) - 1.0f;
    }
  }
}

}  // namespace

Result<LayerRun> LayerRun::create(const LayerCase& c, DType dtype, ActivationMode mode,
                                  const Ops& ops, ThreadPool& pool) {
  LayerRun run;
  run.ops_ = &ops;
  LOOM_ASSIGN(const GridSpec grid, c.grid());
  LOOM_ASSIGN(Network network, Network::finalize(grid, c.input));
  run.network_ = std::make_unique<Network>(std::move(network));
  LOOM_TRY(init_params(*run.network_, c.train ? DType::f32 : dtype, 7, pool));
  if (c.train) {
    TrainStepOptions options;
    options.loss.kind = c.loss;
    options.class_ids = c.loss == Loss::cross_entropy;
    LOOM_ASSIGN(options.optimizer.kind, parse_optimizer(c.optimizer));
    options.dtype = dtype;
    LOOM_ASSIGN(TrainStep step, TrainStep::create(*run.network_, options, ops, pool));
    run.step_ = std::make_unique<TrainStep>(std::move(step));
    fill(run.step_->x(), 1, c.vocab);
    fill(run.step_->target(), 2, run.step_->y().cols());
    for (int64_t i = 0; i < run.step_->weight().shape.count(); ++i) {
      run.step_->weight().f32()[i] = 1.0f / static_cast<float>(run.step_->weight().shape.count());
    }
    run.y_ = run.step_->y();
    return run;
  }
  Trace trace(ops.compute);
  LOOM_ASSIGN(TracedNetwork net, trace_network(*run.network_, trace, {}));
  std::vector<Tensor*> pins = {&net.x, &net.y};
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops, pool, mode));
  run.program_ = std::make_unique<Program>(std::move(program));
  run.ropes_ = std::move(net.ropes);
  fill(net.x, 1, c.vocab);
  run.y_ = net.y;
  return run;
}

Status LayerRun::run() {
  if (program_ != nullptr) {
    LOOM_TRY(program_->run());
    return ops_->device == nullptr ? Status{} : ops_->device->wait();
  }
  const Result<StepResult> result = step_->run(1e-3);
  return result.ok() ? Status{} : Status(result.error());
}

Status LayerRun::run(int count) {
  for (int i = 0; i < count; ++i) {
    LOOM_TRY(program_ != nullptr ? run() : step_->begin(1e-3, i > 0));
  }
  if (program_ != nullptr) return {};
  const Result<std::vector<StepResult>> results = step_->finish();
  return results.ok() ? Status{} : Status(results.error());
}

Result<double> LayerRun::output_magnitude() const {
  LOOM_TRY(to_host(*ops_, {y_}));
  double sum = 0;
  for (int64_t i = 0; i < y_.shape.count(); ++i) {
    const double v = static_cast<double>(y_.f32()[i]);
    sum += v < 0 ? -v : v;
  }
  return sum;
}

}  // namespace loom::core
