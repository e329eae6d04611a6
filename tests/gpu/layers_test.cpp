// Every layer kind on the GPU, through sessions and training steps, against the CPU.
#include "gpu/training_rig.hpp"
#include "grid/session.hpp"

namespace loom::core {

static void PrintTo(const KindNetwork& kind, std::ostream* out) {
  *out << kind.kind;
}

namespace test {
namespace {

class GpuLayers : public testing::TestWithParam<KindNetwork> {};

// 20 steps of Adam: losses within 1e-3 relative, before rounding differences are amplified.
TEST_P(GpuLayers, TrainAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  TrainingPlan plan;
  plan.options.clip = {Clip::norm, 1.0f};
  expect_same_training(GetParam(), plan);
}

// Masters in f32, weights packed again after every step. Each kind has one of the types;
// LOOM_GPU_CASES=all runs every one.
TEST_P(GpuLayers, TrainInOtherNumberTypesAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  static constexpr DType kTypes[] = {DType::i8, DType::q4_0, DType::ternary, DType::f16};
  size_t number = 0;
  for (const KindNetwork& kind : kind_networks()) {
    if (kind.kind == GetParam().kind) break;
    ++number;
  }
  TrainingPlan plan;
  plan.steps = 10;
  plan.options.clip = {Clip::norm, 1.0f};
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (!all_cases() && i != number % std::size(kTypes)) continue;
    SCOPED_TRACE(dtype_name(kTypes[i]));
    plan.options.dtype = kTypes[i];
    expect_same_training(GetParam(), plan);
  }
}

TEST_P(GpuLayers, RunAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  const auto forward = [&](const Ops& ops) -> Result<std::vector<float>> {
    const NetworkSpec& spec = GetParam().network;
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
}  // namespace loom::core
