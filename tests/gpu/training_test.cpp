// Further features of training steps: gradient accumulation, L-BFGS, morphs, observers, weights
// without masters; medium networks; and saving trained networks.
#include "gpu/training_rig.hpp"

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "lab/layer_bench.hpp"

namespace loom::core {

static void PrintTo(const LayerCase& c, std::ostream* out) {
  *out << c.name;
}

namespace test {
namespace {

TEST(GpuTraining, GradientsAreAddedUpOverBatches) {
  LOOM_NEEDS_GPU();
  TrainingPlan plan;
  plan.options.accumulate = 3;
  plan.options.clip = {Clip::layer, 0.5f};
  expect_same_training(kind_network("Dense"), plan);
}

TEST(GpuTraining, Lbfgs) {
  LOOM_NEEDS_GPU();
  TrainingPlan plan;
  plan.options.optimizer.kind = *parse_optimizer("lbfgs");
  plan.rate = 0.1;
  plan.steps = 12;
  expect_same_training(kind_network("Dense"), plan);
}

TEST(GpuTraining, ACellChangesItsNumberTypeInTheMiddle) {
  LOOM_NEEDS_GPU();
  TrainingPlan plan;
  plan.steps = 12;
  plan.before = [](TrainStep& step, int number) -> Status {
    if (number != 4 && number != 8) return {};
    LOOM_TRY(step.morph({0, 0, 0, 0}, number == 4 ? DType::i8 : DType::f16));
    fill_with_sines(step, 0);
    return {};
  };
  expect_same_training(kind_network("Dense"), plan);
}

TEST(GpuTraining, WeightsWithoutMasters) {
  LOOM_NEEDS_GPU();
  for (const DType dtype : {DType::bf16, DType::i8}) {
    SCOPED_TRACE(dtype_name(dtype));
    TrainingPlan plan;
    plan.options.native = true;
    plan.options.dtype = dtype;
    expect_same_training(kind_network("Dense"), plan);
  }
}

TEST(GpuTraining, ObserversSeeWhatTheySeeOnTheCpu) {
  LOOM_NEEDS_GPU();
  struct Seen {
    std::vector<std::string> names;
    std::vector<float> values;
  };
  const auto watch = [](const Ops& ops) -> Result<Seen> {
    Seen seen;
    TrainingPlan plan;
    plan.options.observed = true;
    plan.steps = 4;
    plan.before = [&](TrainStep& step, int number) -> Status {
      if (number != 2) return {};
      step.observe([&](const LayerEvent& event) {
        seen.names.push_back(cat(event.kind, event.at.str(), event.backward ? " back" : ""));
        const ValueStats stats = value_stats(event.values);
        for (const double value : {stats.mean, stats.std, stats.min, stats.max}) {
          seen.values.push_back(static_cast<float>(value));
        }
      });
      return {};
    };
    LOOM_ASSIGN(const Trained trained, train(kind_network("Dense"), ops, plan));
    return seen;
  };
  const Result<Seen> cpu = watch(cpu_ops(best_isa())), got = watch(gpu()->ops());
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_EQ(cpu->names.size(), 8u);
  EXPECT_EQ(got->names, cpu->names);
  EXPECT_LT(distance(cpu->values, got->values), 1e-4);
}

// ---- networks of some size ----

std::vector<LayerCase> showdown() {
  std::vector<LayerCase> cases;
  for (const LayerCase& c : layer_cases()) {
    if (c.suite == "B") cases.push_back(c);
  }
  return cases;
}

// If a CPU emulates the GPU: batches of 2, images of 8 x 8, and fewer epochs.
Status make_small(LayerCase& c) {
  c.input[0] = 2;
  if (c.name != "CNN2") return {};
  LOOM_ASSIGN(const NetworkSpec spec, parse_network(R"({"loom": 1, "input": [3, 8, 8], "layers": [
      {"type": "CNN2", "channels": 3, "filters": 16, "padding": 1, "activation": "relu"},
      {"type": "CNN2", "channels": 16, "filters": 32, "padding": 1, "activation": "relu"},
      {"type": "Dense", "in": 2048, "out": 8}]})",
                                                    "CNN2"));
  c.grid = [grid = spec.grid]() -> Result<GridSpec> { return grid; };
  c.input = spec.input.after(2);
  return {};
}

class GpuShowdown : public testing::TestWithParam<LayerCase> {};

// Mean losses of epochs of 8 batches.
Result<std::vector<double>> curve(const LayerCase& c, const Ops& ops, int epochs) {
  LOOM_ASSIGN(const GridSpec grid, c.grid());
  LOOM_ASSIGN(Network network, Network::finalize(grid, c.input));
  LOOM_TRY(init_params(network, DType::f32, 7, threads()));
  TrainStepOptions options;
  options.loss.kind = c.loss;
  LOOM_ASSIGN(options.optimizer.kind, parse_optimizer(c.optimizer));
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, options, ops, threads()));
  const auto fill = [](const Tensor& t, uint64_t stream) {
    const Rng rng(3, stream);
    for (int64_t i = 0; i < t.shape.count(); ++i) {
      t.f32()[i] = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
    }
  };
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    for (uint64_t batch = 0; batch < 8; ++batch) {
      fill(step.x(), 2 * batch);
      fill(step.target(), 2 * batch + 1);
      std::fill_n(step.weight().f32(), step.weight().shape.count(),
                  1.0f / static_cast<float>(step.weight().shape.count()));
      LOOM_ASSIGN(const StepResult result, step.run(0.01));
      sum += result.loss;
    }
    losses.push_back(sum / 8);
  }
  return losses;
}

TEST_P(GpuShowdown, LosesAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  LayerCase c = GetParam();
  const bool small = gpu()->adapter().software && !all_cases();
  if (small) {
    ASSERT_TRUE(make_small(c).ok());
  }
  const int epochs = small ? 3 : 20;
  const auto cpu = curve(c, cpu_ops(best_isa()), epochs), got = curve(c, gpu()->ops(), epochs);
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_NE(cpu->back(), cpu->front());
  for (size_t i = 0; i < cpu->size(); ++i) {
    EXPECT_NEAR((*got)[i], (*cpu)[i], 1e-3 * (*cpu)[i]) << "epoch " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(B, GpuShowdown, testing::ValuesIn(showdown()), [](const auto& test) {
  std::string name = test.param.name;
  std::erase(name, ' ');
  return name;
});

// ---- into a file ----

double number_of(const Ran& ran, std::string_view key) {
  const Result<JsonValue> json = parse_json(ran.out, "stdout");
  EXPECT_TRUE(json.ok()) << ran.out << ran.err;
  const JsonValue* value = json.ok() ? json->find(key) : nullptr;
  return value == nullptr ? NAN : value->as_double("").value();
}

TEST(GpuTraining, WhatWasTrainedIsAFileThatTheCpuLoads) {
  LOOM_NEEDS_GPU();
  const TempFolder folder;
  std::string csv = "a,b,kind\n";
  for (int i = 0; i < 120; ++i) {
    const double angle = 0.7 * i, radius = 1 + i % 3;
    csv += cat(radius * std::cos(angle), ",", radius * std::sin(angle), ",k", i % 3, "\n");
  }
  const std::string data = folder.write("rings.csv", csv), net = folder.path() + "/net.json";
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 24,16 --out 3 --activation tanh -o " + net).code, 0);
  for (const std::string dtype : {"float32", "int8"}) {
    const std::string common = " " + data + " --threads 1 --json ";
    double losses[2] = {};
    for (const std::string device : {"cpu", "gpu"}) {
      const std::string file = cat(folder.path(), "/", device, dtype, ".entity");
      const Ran trained =
          run_loom(cat("train ", net, common, "--epochs 10 --rate 0.01 --quiet --dtype ", dtype,
                       " --device ", device, " -o ", file));
      ASSERT_EQ(trained.code, 0) << trained.err;
      const Ran here = run_loom("eval " + file + common);
      ASSERT_EQ(here.code, 0) << here.err;
      const double loss = number_of(here, "loss");
      losses[device == "gpu" ? 1 : 0] = loss;
      if (device == "cpu") continue;
      const Ran there = run_loom("eval " + file + common + "--device gpu");
      ASSERT_EQ(there.code, 0) << there.err;
      EXPECT_NEAR(number_of(there, "loss"), loss, 1e-5 * loss) << dtype;
    }
    EXPECT_NEAR(losses[1], losses[0], 1e-3 * losses[0]) << dtype;
  }
}

}  // namespace
}  // namespace test
}  // namespace loom::core
