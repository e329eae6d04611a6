// Training without a master: the packed weights themselves, rounded stochastically.
#include "base/threads/thread_pool.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

TrainStepOptions native() {
  TrainStepOptions o;
  o.native = true;
  o.clip = {Clip::norm, 1.0f};
  return o;
}

GridSpec mlp() {
  return row_of({dense(8, 32, "tanh"), dense(32, 6)});
}

class NativeType : public ::testing::TestWithParam<DType> {};

TEST_P(NativeType, LowersTheLossWithoutAMaster) {
  TrainRig rig(mlp(), Shape{16, 8}, DType::f32, native(), cpu_ops(best_isa()), 1, GetParam());
  ASSERT_TRUE(rig.ready());
  for (const StateTensor& s : rig.step().state()) {
    EXPECT_FALSE(s.name.ends_with("weight")) << "there is a master: " << s.name;
  }
  const std::vector<double> losses = rig.run(200, 0.01);
  EXPECT_LE(losses.back(), 0.5 * losses.front());
}

TEST_P(NativeType, GivesTheSameBitsOnAnyThreadsAndInstructions) {
  const auto weights = [](const Ops& ops, int threads) {
    TrainRig rig(mlp(), Shape{16, 8}, DType::f32, native(), ops, threads, GetParam());
    rig.run(10, 0.01);
    const Param& p = rig.network().params()[0];
    return std::vector<std::byte>(p.memory.data(), p.memory.data() + p.memory.size());
  };
  const std::vector<std::byte> golden = weights(reference_ops(), 1);
  for (const Isa isa : available_isas()) {
    for (int threads : {1, 3}) {
      EXPECT_TRUE(weights(cpu_ops(isa), threads) == golden) << isa_name(isa) << ", " << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Types, NativeType,
                         ::testing::Values(DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                           DType::i8, DType::u8, DType::i16),
                         [](const auto& c) { return std::string(dtype_name(c.param)); });

TEST(Native, RefusesATypeThatCannotBeRoundedStochastically) {
  ThreadPool pool(1, true);
  Result<Network> network = Network::finalize(mlp(), Shape{16, 8});
  ASSERT_TRUE(network.ok());
  ASSERT_TRUE(init_params(*network, DType::q4_0, 7, pool).ok());
  const Result<TrainStep> step = TrainStep::create(*network, native(), reference_ops(), pool);
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().message,
            "pack: q4_0 cannot be rounded stochastically: float16, bfloat16, fp8 and integers of 8 "
            "and 16 bits can");
}

TEST(StochasticRounding, IsRightOnAverage) {
  // 0.3 of the way between two neighbours must be rounded up 0.3 of the time.
  const R16 g = r16_geometry(DType::bf16, 16, 4096);
  std::vector<float> x(static_cast<size_t>(g.rows * g.cols), 1.0f + 0.3f * 0x1p-7f);
  std::vector<std::byte> memory(static_cast<size_t>(g.bytes()));
  r16_pack_stochastic(g, x.data(), 0, 16, {1, 2, 3}, memory.data());
  std::vector<float> row(4096);
  double sum = 0;
  for (int64_t r = 0; r < 16; ++r) {
    r16_decode(g, memory.data(), r, 0, 4096, row.data());
    for (float v : row) {
      EXPECT_TRUE(v == 1.0f || v == 1.0f + 0x1p-7f);
      sum += v;
    }
  }
  EXPECT_NEAR(sum / 65536, 1.0 + 0.3 * 0x1p-7, 0.02 * 0x1p-7);
}

}  // namespace
}  // namespace loom::core::test
