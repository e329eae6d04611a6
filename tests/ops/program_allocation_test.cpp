// A training step, which is a replayed program, allocates nothing, on any lane.
#include "learn/every_kind.hpp"
#include "ops/allocations.hpp"

namespace loom::core::test {
namespace {

class StepAllocations : public ::testing::TestWithParam<KindCase> {};

TEST_P(StepAllocations, AreNone) {
  const KindCase& kind = GetParam();
  TrainStepOptions options;
  options.clip = {Clip::norm, 1.0f};
  TrainRig rig(kind.grid, kind.input, DType::f32, options, cpu_ops(best_isa()), 2);
  ASSERT_TRUE(rig.ready());
  ASSERT_TRUE(rig.step().run(0.01).ok());  // the first run makes the scratch memory of the lanes
  const int64_t before = test::allocations();
  for (int i = 0; i < 3; ++i) {
    const Result<StepResult> result = rig.step().run(0.01);
    EXPECT_TRUE(result.ok());
  }
  EXPECT_EQ(test::allocations() - before, 0);
}
INSTANTIATE_TEST_SUITE_P(Kinds, StepAllocations, ::testing::ValuesIn(every_kind()),
                         [](const auto& c) { return c.param.name; });

TEST(SparseStepAllocations, AreNone) {
  TrainStepOptions options;
  options.clip = {Clip::norm, 1.0f};
  TrainRig rig(
      row_of({layer(LayerKind::embedding, {{"vocab", 500}, {"width", 6}, {"sparse", true}}),
              dense(6, 3)}),
      Shape{4, 8}, DType::f32, options, cpu_ops(best_isa()), 2, DType::i8);
  ASSERT_TRUE(rig.ready());
  ASSERT_TRUE(rig.step().run(0.01).ok());
  const int64_t before = test::allocations();
  EXPECT_TRUE(rig.step().run(0.01).ok());
  EXPECT_EQ(test::allocations() - before, 0);
}

}  // namespace
}  // namespace loom::core::test
