// Training of random networks with feedback. Gradients of f32 steps are compared with the
// evaluator. Three things must not change a bit: gradient checkpointing, a resumed run, and an
// evaluation in batches of another size.
#include <cstring>

#include "learn/trainer.hpp"
#include "outside/rig.hpp"

namespace loom::core::outside {
namespace {

constexpr int64_t kBatch = 3;
constexpr double kTrainingTolerance = 1e-3;  // f32 against doubles, through up to seven layers

std::vector<double> targets(const Shape& output, uint64_t pass) {
  return numbers(output.count(), 3000 + pass);
}

class Training {
 public:
  Training(const RandomGrid& grid, const TrainStepOptions& options) : grid_(grid), pool_(1, true) {
    Result<Network> made = Network::finalize(grid.spec.grid, grid.spec.input.after(kBatch));
    EXPECT_TRUE(made.ok()) << made.error().str();
    if (!made.ok()) return;
    network = std::make_unique<Network>(std::move(*made));
    EXPECT_TRUE(load_params(*network, pool_).ok());
    Result<TrainStep> created = TrainStep::create(*network, options, cpu_ops(best_isa()), pool_);
    EXPECT_TRUE(created.ok()) << created.error().str() << "\n" << grid.str();
    if (created.ok()) step = std::make_unique<TrainStep>(std::move(*created));
  }

  void run(uint64_t pass) {
    put<float>(step->x(), inputs(grid_, network->input().count(), pass));
    put<float>(step->target(), targets(network->output(), pass));
    const auto rows = static_cast<double>(network->output().rows());
    put<float>(step->weight(), std::vector<double>(static_cast<size_t>(rows), 1 / rows));
    const Result<StepResult> result = step->run(0.01);
    EXPECT_TRUE(result.ok() && result->finite) << grid_.str();
  }

  // Everything that a run leaves, byte by byte.
  std::string bytes() const {
    std::string all;
    for (const StateTensor& s : step->state()) append(all, s.tensor);
    append(all, step->y());
    return all;
  }

  std::unique_ptr<Network> network;
  std::unique_ptr<TrainStep> step;

 private:
  static void append(std::string& to, const Tensor& t) {
    to.append(reinterpret_cast<const char*>(t.data),
              static_cast<size_t>(plain_bytes(t.dtype, t.shape)));
  }
  const RandomGrid& grid_;
  ThreadPool pool_;
};

TrainStepOptions carrying(bool carry) {
  TrainStepOptions o;
  o.carry_feedback = carry;
  return o;
}

// Adds the gradients of one batch's mean squared error to `sums`.
void add_gradients(const RandomGrid& grid, const Network& network, Evaluator& evaluator,
                   uint64_t pass, std::vector<std::vector<double>>& sums) {
  Tape tape;
  fill_params(evaluator, network, &tape);
  const std::vector<double> x = inputs(grid, network.input().count(), pass);
  const std::vector<double> want = targets(network.output(), pass);
  const Array y = evaluator.pass(array_from(network.input(), x), nullptr);
  Var loss(0);
  for (size_t i = 0; i < want.size(); ++i) {
    const Var error = y.v[i] - Var(want[i]);
    loss = loss + error * error / Var(static_cast<double>(want.size()));
  }
  const std::vector<double> d = tape.derivatives(loss.at);
  sums.resize(network.params().size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::vector<Var>& values = evaluator.params.at(network.params()[i].path);
    sums[i].resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) sums[i][k] += d[static_cast<size_t>(values[k].at)];
  }
}

TEST(RandomTraining, AddsUpTheGradientsOfTheFormulas) {
  for (const bool carry : {true, false}) {
    for (uint64_t seed = 0; seed < grid_count(100) && !HasFailure(); ++seed) {
      const RandomGrid grid = random_grid({.seed = seed,
                                           .feedback = true,
                                           .any_width = seed % 2 == 1,
                                           .smooth = true,
                                           .batch = kBatch});
      TrainStepOptions options = carrying(carry);
      options.accumulate = 100;
      Training training(grid, options);
      ASSERT_NE(training.step, nullptr);
      Evaluator evaluator = evaluator_of(grid, kBatch);
      std::vector<std::vector<double>> sums;
      for (uint64_t pass = 0; pass < 3; ++pass) {
        training.run(pass);
        if (!carry) evaluator.forget();
        add_gradients(grid, *training.network, evaluator, pass, sums);
        for (size_t i = 0; i < sums.size(); ++i) {
          const Tensor& got = training.step->gradients()[i];
          ASSERT_LE(distance(std::span<const float>(got.f32(), sums[i].size()), sums[i], 1e-2),
                    kTrainingTolerance)
              << training.network->params()[i].path << ", pass " << pass << ", seed " << seed
              << "\n"
              << grid.str();
        }
      }
    }
  }
}

TEST(RandomTraining, WithGradientCheckpointingLeavesTheSameBits) {
  for (uint64_t seed = 0; seed < grid_count(60) && !HasFailure(); ++seed) {
    const RandomGrid grid =
        random_grid({.seed = seed, .feedback = true, .any_width = seed % 2 == 1, .batch = kBatch});
    const auto trained = [&](int64_t cells) {
      TrainStepOptions options = carrying(true);
      options.checkpoint_cells = cells;
      Training training(grid, options);
      for (uint64_t pass = 0; pass < 3; ++pass) training.run(pass);
      return training.bytes();
    };
    const std::string whole = trained(0);
    for (const int64_t cells : {1, 2}) {
      ASSERT_TRUE(trained(cells) == whole) << cells << " cells, seed " << seed << "\n"
                                           << grid.str();
    }
  }
}

TEST(RandomTraining, IsResumedWithTheSameBits) {
  for (uint64_t seed = 0; seed < grid_count(60) && !HasFailure(); ++seed) {
    const RandomGrid grid =
        random_grid({.seed = seed, .feedback = true, .any_width = seed % 2 == 1, .batch = kBatch});
    Training uninterrupted(grid, carrying(true)), first(grid, carrying(true)),
        second(grid, carrying(true));
    for (uint64_t pass = 0; pass < 4; ++pass) uninterrupted.run(pass);
    for (uint64_t pass = 0; pass < 2; ++pass) first.run(pass);
    const std::vector<StateTensor>&from = first.step->state(), &to = second.step->state();
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].name, to[i].name);
      std::memcpy(to[i].tensor.data, from[i].tensor.data,
                  static_cast<size_t>(plain_bytes(to[i].tensor.dtype, to[i].tensor.shape)));
    }
    ASSERT_TRUE(second.step->restored(first.step->updates()).ok());
    for (uint64_t pass = 2; pass < 4; ++pass) second.run(pass);
    ASSERT_TRUE(second.bytes() == uninterrupted.bytes()) << "seed " << seed << "\n" << grid.str();
  }
}

TEST(RandomTraining, IsEvaluatedWithTheSameBitsInBatchesOfAnySize) {
  for (uint64_t seed = 0; seed < grid_count(60) && !HasFailure(); ++seed) {
    const RandomGrid grid =
        random_grid({.seed = seed, .feedback = true, .any_width = seed % 2 == 1});
    Result<Network> network = Network::finalize(grid.spec.grid, grid.spec.input.after(1));
    ASSERT_TRUE(network.ok());
    Dataset data;
    data.samples = 13;
    data.sample = grid.spec.input;
    const std::vector<double> x = inputs(grid, 13 * grid.spec.input.count(), 1);
    if (grid.vocab > 0)
      data.ids.assign(x.begin(), x.end());
    else
      data.inputs.assign(x.begin(), x.end());
    data.outputs = network->output().count();
    const std::vector<double> t = numbers(13 * data.outputs, 2);
    data.targets.assign(t.begin(), t.end());
    ThreadPool pool(1, true);
    const auto loss = [&](int64_t batch) {
      TrainerSpec options;
      options.batch = batch;
      Result<Trainer> trainer =
          Trainer::create(grid.spec.grid, data, options, cpu_ops(best_isa()), pool);
      EXPECT_TRUE(trainer.ok()) << trainer.error().str();
      if (!trainer.ok()) return -1.0;
      const Result<Evaluation> result = trainer->evaluate(data);
      EXPECT_TRUE(result.ok()) << result.error().str();
      return result.ok() ? result->loss : -1.0;
    };
    const double whole = loss(13);
    for (const int64_t batch : {1, 2, 5}) {
      ASSERT_EQ(loss(batch), whole) << batch << " samples, seed " << seed << "\n" << grid.str();
    }
  }
}

}  // namespace
}  // namespace loom::core::outside
