// Observers see every layer, forward and backward, and change nothing.
#include <set>

#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

TEST(ValueStats, AreThoseOfTheNumbers) {
  float values[] = {1, 2, 99, 3, -6, 99};  // two rows of two, each with padding
  Tensor t;
  t.shape = Shape{2, 2};
  t.row_stride = 3;
  t.data = reinterpret_cast<std::byte*>(values);
  const ValueStats s = value_stats(t);
  EXPECT_EQ(s.total, 4);
  EXPECT_EQ(s.active, 4);
  EXPECT_DOUBLE_EQ(s.mean, 0.0);
  EXPECT_DOUBLE_EQ(s.std, std::sqrt(12.5));
  EXPECT_EQ(s.min, -6);
  EXPECT_EQ(s.max, 3);
  values[0] = NAN;
  values[1] = 1e-7f;
  const ValueStats broken = value_stats(t);
  EXPECT_TRUE(std::isnan(broken.mean));
  EXPECT_EQ(broken.min, -6);
  EXPECT_EQ(broken.active, 2);
}

class Observed : public ::testing::TestWithParam<KindCase> {};

TEST_P(Observed, LayersFireInOrderForwardAndBackward) {
  const KindCase& kind = GetParam();
  for (int64_t checkpoint : {0, 1}) {
    TrainStepOptions options;
    options.checkpoint_cells = checkpoint;
    TrainRig plain(kind.grid, kind.input, DType::f32, options, cpu_ops(best_isa()), 2);
    options.observed = true;
    TrainRig rig(kind.grid, kind.input, DType::f32, options, cpu_ops(best_isa()), 2);
    ASSERT_TRUE(rig.ready());
    std::vector<std::string> seen;
    rig.step().observe([&](const LayerEvent& e) {
      seen.push_back(std::to_string(e.at.x) + (e.backward ? " back" : ""));
      const ValueStats s = value_stats(e.values);
      EXPECT_GT(s.total, 0);
      EXPECT_TRUE(std::isfinite(s.mean) && std::isfinite(s.std));
      EXPECT_GT(s.active, 0) << e.kind << (e.backward ? " backward" : " forward");
    });
    rig.run(3, 0.01);
    plain.run(3, 0.01);
    const auto cells = static_cast<int64_t>(rig.network().cells().size());
    std::vector<std::string> expected;
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < cells; ++i) expected.push_back(std::to_string(i));
      for (int64_t i = cells - 1; i >= 0; --i) expected.push_back(std::to_string(i) + " back");
    }
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(rig.hash(), plain.hash());
    rig.step().observe({});
    rig.run(1, 0.01);
    EXPECT_EQ(seen, expected);
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, Observed, ::testing::ValuesIn(every_kind()),
                         [](const auto& c) { return c.param.name; });

TEST(Observed, OutputsAndGradientsAreTheRealOnes) {
  // One linear Dense: its output is the prediction, its gradient 2 (y - target) weight / columns.
  TrainStepOptions options;
  options.observed = true;
  TrainRig rig(row_of({dense(5, 3)}), Shape{4, 5}, DType::f32, options);
  std::vector<float> y, dy;
  rig.step().observe([&](const LayerEvent& e) {
    (e.backward ? dy : y).assign(e.values.f32(), e.values.f32() + e.values.shape.count());
  });
  rig.run(1, 0.0);
  ASSERT_EQ(y.size(), 12u);
  ASSERT_EQ(dy.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(y[i], rig.step().y().f32()[i]);
    const float weight = rig.step().weight().f32()[i / 3];
    EXPECT_NEAR(dy[i], 2.0f * (y[i] - rig.step().target().f32()[i]) * weight / 3.0f, 1e-7);
  }
}

}  // namespace
}  // namespace loom::core::test
