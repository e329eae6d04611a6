// One training step: losses fall, every optimizer and clip works, gradients add up, bits do not
// depend on threads or instruction sets.
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

GridSpec small_mlp() {
  return row_of({layer(LayerKind::dense, {{"in", 8}, {"out", 24}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 24}, {"out", 6}})});
}

TrainStepOptions step_with(const char* optimizer) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(optimizer);
  return o;
}

class EveryOptimizer : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryOptimizer, LowersTheLoss) {
  const bool plain = std::string(GetParam()) == "sgd";
  TrainRig rig(small_mlp(), Shape{16, 8}, DType::f32, step_with(GetParam()));
  const std::vector<double> losses = rig.run(60, plain ? 0.3 : 0.01);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}
INSTANTIATE_TEST_SUITE_P(Optimizers, EveryOptimizer,
                         ::testing::Values("sgd", "momentum", "nesterov", "rmsprop", "adam",
                                           "adamw", "lion"));

TEST(TrainStep, ClipsInThreeWays) {
  for (const char* clip : {"norm", "layer", "value"}) {
    TrainStepOptions o = step_with("sgd");
    o.clip = {*parse_clip(clip), 0.01f};
    TrainRig rig(small_mlp(), Shape{16, 8}, DType::f32, o);
    const std::vector<float> before(rig.step().state()[0].tensor.f32(),
                                    rig.step().state()[0].tensor.f32() + 8);
    rig.run(1, 1.0);
    double moved = 0;
    for (int i = 0; i < 8; ++i) {
      moved =
          std::max(moved, std::fabs(static_cast<double>(before[static_cast<size_t>(i)] -
                                                        rig.step().state()[0].tensor.f32()[i])));
    }
    EXPECT_GT(moved, 0) << clip;
    EXPECT_LE(moved, 0.0101) << clip;
  }
}

TEST(TrainStep, AddsUpGradientsOverBatches) {
  // Two batches of the same data at half the weight each are one batch of it.
  TrainStepOptions twice = step_with("adam");
  twice.accumulate = 2;
  TrainRig one(small_mlp(), Shape{16, 8}, DType::f32, step_with("adam"));
  TrainRig two(small_mlp(), Shape{16, 8}, DType::f32, twice);
  for (int64_t i = 0; i < two.step().weight().shape.count(); ++i) {
    two.step().weight().f32()[i] *= 0.5f;
  }
  one.run(5, 0.01);
  two.run(10, 0.01);
  ASSERT_EQ(one.step().updates(), 5);
  ASSERT_EQ(two.step().updates(), 5);
  size_t compared = 0;
  for (const StateTensor& a : one.step().state()) {
    for (const StateTensor& b : two.step().state()) {
      if (a.name != b.name) continue;
      ++compared;
      for (int64_t i = 0; i < a.tensor.shape.count(); ++i) {
        ASSERT_EQ(a.tensor.f32()[i], b.tensor.f32()[i]) << a.name << " at " << i;
      }
    }
  }
  EXPECT_EQ(compared, one.step().state().size());
}

TEST(TrainStep, DropsAnUpdateThatIsNotFinite) {
  TrainRig rig(small_mlp(), Shape{16, 8}, DType::f32, step_with("adam"));
  rig.run(2, 0.01);
  const uint64_t before = rig.hash();
  const float kept = rig.step().x().f32()[3];
  rig.step().x().f32()[3] = NAN;
  const Result<StepResult> bad = rig.step().run(0.01);
  ASSERT_TRUE(bad.ok());
  EXPECT_FALSE(bad->finite);
  EXPECT_FALSE(bad->updated);
  EXPECT_EQ(rig.step().updates(), 2);
  rig.step().x().f32()[3] = kept;
  const uint64_t state = rig.hash();
  EXPECT_NE(before, 0u);
  EXPECT_NE(state, 0u);
  const std::vector<double> after = rig.run(1, 0.01);
  EXPECT_TRUE(std::isfinite(after[0]));
}

TEST(TrainStep, GivesTheSameBitsOnAnyThreadsAndInstructions) {
  const auto hash = [](const Ops& ops, int threads) {
    TrainStepOptions o = step_with("adam");
    o.clip = {Clip::norm, 1.0f};
    TrainRig rig(small_mlp(), Shape{16, 8}, DType::f32, o, ops, threads);
    rig.run(20, 0.01);
    return rig.hash();
  };
  const uint64_t golden = hash(reference_ops(), 1);
  for (int threads : {1, 2, 3, 7}) {
    for (const Isa isa : available_isas())
      EXPECT_EQ(hash(cpu_ops(isa), threads), golden) << threads;
  }
}

}  // namespace
}  // namespace loom::core::test
