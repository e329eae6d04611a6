// Every layer kind on the GPU, through sessions and training steps, beside the CPU.
#include "backend/cpu/cpu.hpp"
#include "bridge/network_json.hpp"
#include "engine/training_hash.hpp"
#include "gpu/support.hpp"
#include "grid/init.hpp"
#include "grid/session.hpp"

namespace loom {

static void PrintTo(const KindNetwork& kind, std::ostream* out) {
  *out << kind.kind;
}

namespace test {
namespace {

class GpuLayers : public testing::TestWithParam<KindNetwork> {};

struct Trained {
  std::vector<double> losses;
  std::vector<float> y, weights;
};

Result<Trained> train(const KindNetwork& kind, const Ops& ops, int steps) {
  LOOM_ASSIGN(const NetworkSpec spec, parse_network(kind.network, kind.kind));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(kind.batch)));
  LOOM_TRY(init_params(network, DType::f32, 7, threads()));
  TrainStepOptions options;
  options.clip = {ClipKind::norm, 1.0f};
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, options, ops, threads()));
  fill_with_sines(step, network.vocab());
  Trained result;
  for (int i = 0; i < steps; ++i) {
    LOOM_ASSIGN(const StepResult r, step.run(0.01));
    result.losses.push_back(r.loss);
  }
  LOOM_TRY(to_host(ops, {step.y()}));
  LOOM_TRY(step.fetch());
  const auto add = [](std::vector<float>& to, const Tensor& t) {
    to.insert(to.end(), t.f32(), t.f32() + t.shape.count());
  };
  add(result.y, step.y());
  for (const StateTensor& s : step.state()) add(result.weights, s.tensor);
  return result;
}

// 20 steps of Adam: losses within 1e-3 relative, as far as rounding has not been amplified.
TEST_P(GpuLayers, TrainAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  const Result<Trained> cpu = train(GetParam(), cpu_ops(best_isa()), 20);
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  const int64_t before = gpu()->counts().total_fallbacks();
  const Result<Trained> got = train(GetParam(), gpu()->ops(), 20);
  ASSERT_TRUE(got.ok()) << got.error().str();
  for (size_t i = 0; i < cpu->losses.size(); ++i) {
    EXPECT_NEAR(got->losses[i], cpu->losses[i], 1e-3 * std::abs(cpu->losses[i])) << "step " << i;
  }
  EXPECT_LT(distance(cpu->y, got->y), 1e-3);
  EXPECT_EQ(gpu()->counts().total_fallbacks(), before) << "ops ran on the CPU";
}

TEST_P(GpuLayers, RunAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  const auto forward = [&](const Ops& ops) -> Result<std::vector<float>> {
    LOOM_ASSIGN(const NetworkSpec spec, parse_network(GetParam().network, GetParam().kind));
    LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(GetParam().batch)));
    LOOM_TRY(init_params(network, DType::f32, 7, threads()));
    SessionOptions options;
    options.sequences = GetParam().batch;
    LOOM_ASSIGN(Session session,
                Session::create(network, ops, threads(), network.input(), options));
    std::vector<float> values(static_cast<size_t>(network.input().count()));
    Tensor x;
    x.shape = network.input();
    x.row_stride = x.shape.last();
    x.data = reinterpret_cast<std::byte*>(values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      if (network.vocab() > 0) {
        x.dtype = DType::i32;
        x.i32()[i] = static_cast<int32_t>(i % static_cast<size_t>(network.vocab()));
      } else {
        values[i] = static_cast<float>(static_cast<int>(i * 37 % 41) - 20) * 0.05f;
      }
    }
    LOOM_ASSIGN(const Tensor y, session.forward(x, 0, network.cells().size()));
    return std::vector<float>(y.f32(), y.f32() + y.shape.count());
  };
  const auto cpu = forward(cpu_ops(best_isa()));
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  const auto got = forward(gpu()->ops());
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_LT(distance(*cpu, *got), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuLayers, testing::ValuesIn(kind_networks()),
                         [](const auto& test) { return std::string(test.param.kind); });

}  // namespace
}  // namespace test
}  // namespace loom
