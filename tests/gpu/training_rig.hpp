// Equal training on the GPU and on the CPU: the results of a run, and the distance of two runs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "gpu/support.hpp"
#include "grid/init.hpp"
#include "lab/training_hash.hpp"
#include "ops/ops.hpp"

namespace loom::core::test {

struct Trained {
  std::vector<double> losses;
  std::vector<float> y, weights;
};

struct TrainingPlan {
  TrainStepOptions options;
  int steps = 20;
  double rate = 0.01;
  // Called before each step, with its number from 0.
  std::function<Status(TrainStep&, int step)> before;
};

// A network of one kind on sines.
inline Result<Trained> train(const KindNetwork& kind, const Ops& ops, const TrainingPlan& plan) {
  const NetworkSpec& spec = kind.network;
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(kind.batch)));
  LOOM_TRY(init_params(network, DType::f32, 7, threads()));
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, plan.options, ops, threads()));
  fill_with_sines(step, network.vocab());
  Trained result;
  for (int i = 0; i < plan.steps; ++i) {
    if (plan.before) {
      LOOM_TRY(plan.before(step, i));
    }
    LOOM_ASSIGN(const StepResult r, step.run(plan.rate));
    result.losses.push_back(r.loss);
  }
  LOOM_TRY(to_host(ops, {step.y()}));
  LOOM_TRY(step.fetch());
  const auto add = [](std::vector<float>& to, const Tensor& t) {
    if (t.dtype == DType::f32) to.insert(to.end(), t.f32(), t.f32() + t.shape.count());
  };
  add(result.y, step.y());
  for (const StateTensor& s : step.state()) add(result.weights, s.tensor);
  return result;
}

// Layers whose training has no kernel of its own yet: docs/decisions/0116 and 0120.
inline bool trains_on_the_cpu(const KindNetwork& kind) {
  return kind.kind == "Experts" || kind.kind == "SelectiveScan" || kind.kind == "ShortConv";
}

// Losses within 1e-3 of the CPU's, predictions too, and no op ran on the CPU.
inline void expect_same_training(const KindNetwork& kind, const TrainingPlan& plan) {
  const Result<Trained> cpu = train(kind, cpu_ops(best_isa()), plan);
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  const int64_t before = gpu()->counts().total_fallbacks();
  const Result<Trained> got = train(kind, gpu()->ops(), plan);
  ASSERT_TRUE(got.ok()) << got.error().str();
  for (size_t i = 0; i < cpu->losses.size(); ++i) {
    EXPECT_NEAR(got->losses[i], cpu->losses[i], 1e-3 * std::abs(cpu->losses[i])) << "step " << i;
  }
  EXPECT_LT(distance(cpu->y, got->y), 1e-3);
  const int64_t fallbacks = gpu()->counts().total_fallbacks() - before;
  if (trains_on_the_cpu(kind)) {
    EXPECT_GT(fallbacks, 0) << "it has kernels now: remove it from the list";
  } else {
    EXPECT_EQ(fallbacks, 0) << "ops ran on the CPU";
  }
}

inline const KindNetwork& kind_network(std::string_view name) {
  for (const KindNetwork& kind : kind_networks()) {
    if (kind.kind == name) return kind;
  }
  return kind_networks()[0];
}

}  // namespace loom::core::test
