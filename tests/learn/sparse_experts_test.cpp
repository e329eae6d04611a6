// Training of Experts: a task of several linear maps, each for inputs around a centre. The layer
// learns it better than one MLP of the width that runs for a row.
#include "learn/train_rig.hpp"

namespace loom::core::test::sparse_experts {
namespace {

constexpr int64_t kWidth = 12, kRows = 96, kMaps = 6;

GridSpec one_layer(LayerKind kind, const std::vector<Field>& fields) {
  GridSpec grid(1, 1, 1, 1);
  EXPECT_TRUE(grid.put({0, 0, 0, 0}, {layer(kind, fields), {}}).ok());
  return grid;
}

// Row r belongs to map r mod kMaps: its target is that map of it.
void fill(TrainStep& step) {
  const Rng rng(5, 1);
  uint64_t at = 0;
  const auto draw = [&] { return 2 * rng.uniform(at++) - 1; };
  std::vector<float> centres(kMaps * kWidth), maps(kMaps * kWidth * kWidth);
  for (float& v : centres) v = 2 * draw();
  for (float& v : maps) v = draw();
  for (int64_t r = 0; r < kRows; ++r) {
    const int64_t m = r % kMaps;
    float* x = step.x().f32_row(r);
    for (int64_t i = 0; i < kWidth; ++i) x[i] = centres[m * kWidth + i] + 0.5f * draw();
    for (int64_t o = 0; o < kWidth; ++o) {
      float sum = 0;
      for (int64_t i = 0; i < kWidth; ++i) sum += maps[(m * kWidth + o) * kWidth + i] * x[i];
      step.target().f32_row(r)[o] = 0.3f * sum;
    }
  }
}

double loss_after(const GridSpec& grid, int steps) {
  TrainStepOptions options;
  options.optimizer.kind = *parse_optimizer("adam");
  TrainRig rig(grid, Shape{kRows, kWidth}, DType::f32, options);
  if (!rig.ready()) return NAN;
  fill(rig.step());
  return rig.run(steps, 0.01).back();
}

TEST(SparseExperts, LearnSeveralMapsBetterThanAnMlpOfTheirActiveWidth) {
  const double experts =
      loss_after(one_layer(LayerKind::experts,
                           {{"width", kWidth}, {"inner", 8}, {"experts", 8}, {"chosen", 2}}),
                 300);
  const double mlp =
      loss_after(one_layer(LayerKind::swiglu, {{"width", kWidth}, {"inner", 16}}), 300);
  EXPECT_LT(experts, 0.5 * mlp) << "experts " << experts << ", mlp " << mlp;
}

}  // namespace
}  // namespace loom::core::test::sparse_experts
