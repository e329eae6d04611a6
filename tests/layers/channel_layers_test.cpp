// Layers over channels, as they are used: BatchNorm, GroupNorm and InstanceNorm against a naive
// evaluation in doubles on random shapes, Dropout, and what each of them refuses.
#include "base/text.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

class Shapes {
 public:
  int64_t below(int64_t n) {
    return static_cast<int64_t>(random_.bits(drawn_++) % static_cast<uint64_t>(n));
  }
  Shape next(int64_t channels, bool spots) {
    const int64_t batch = 1 + below(4);
    switch (below(4) + (spots ? 1 : 0)) {
      case 0: return Shape{batch, channels};
      case 1:
      case 2: return Shape{batch, channels, 2 + below(40)};
      case 3: return Shape{batch, channels, 2 + below(7), 1 + below(7)};
      default: return Shape{batch, channels, 2 + below(4), 1 + below(4), 1 + below(4)};
    }
  }

 private:
  Rng random_{17, 4};
  uint64_t drawn_ = 0;
};

// y = (x - mean) / sqrt(var + eps) over runs of `run` values, gamma and beta per channel.
Values normalized(const Values& x, size_t run, double eps) {
  Values y(x.size());
  for (size_t first = 0; first < x.size(); first += run) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < run; ++i) mean += x[first + i] / static_cast<double>(run);
    for (size_t i = 0; i < run; ++i)
      var += (x[first + i] - mean) * (x[first + i] - mean) / static_cast<double>(run);
    for (size_t i = 0; i < run; ++i) y[first + i] = (x[first + i] - mean) / std::sqrt(var + eps);
  }
  return y;
}

void scale_channels(Values& y, const Shape& shape, const Values& gamma, const Values& beta) {
  const auto channels = static_cast<size_t>(shape[1]);
  const size_t spots = y.size() / static_cast<size_t>(shape[0]) / channels;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / spots % channels;
    y[i] = y[i] * gamma[c] + beta[c];
  }
}

TEST(GroupNorm, NormalizesTheGroupsOfEverySampleOfRandomShapes) {
  Shapes shapes;
  for (int round = 0; round < 60; ++round) {
    const int64_t groups = 1 + shapes.below(4), each = 2 + shapes.below(4);
    const bool affine = shapes.below(2) == 1;
    const Shape shape = shapes.next(groups * each, false);
    SCOPED_TRACE(cat(shape.str(), ", groups ", groups));
    LayerRig rig(
        layer(LayerKind::group_norm,
              {{"channels", groups * each}, {"groups", groups}, {"eps", 1e-3}, {"affine", affine}}),
        shape);
    const auto x = random_values(shape.count(), 20 + static_cast<uint64_t>(round), 2.0f);
    Values want =
        normalized(doubles(x), static_cast<size_t>(shape.count() / shape[0] / groups), 1e-3);
    if (affine) scale_channels(want, shape, rig.weight("gamma"), rig.weight("beta"));
    expect_near(rig.run(x, shape), want, 1e-5);
  }
}

TEST(InstanceNorm, NormalizesEveryChannelOfEverySampleOfRandomShapes) {
  Shapes shapes;
  for (int round = 0; round < 40; ++round) {
    const int64_t channels = 1 + shapes.below(9);
    const bool affine = shapes.below(2) == 1;
    const Shape shape = shapes.next(channels, true);
    SCOPED_TRACE(shape.str());
    LayerRig rig(layer(LayerKind::instance_norm,
                       {{"channels", channels}, {"eps", 1e-3}, {"affine", affine}}),
                 shape);
    const auto x = random_values(shape.count(), 90 + static_cast<uint64_t>(round), 2.0f);
    Values want =
        normalized(doubles(x), static_cast<size_t>(shape.count() / shape[0] / channels), 1e-3);
    if (affine) scale_channels(want, shape, rig.weight("gamma"), rig.weight("beta"));
    expect_near(rig.run(x, shape), want, 1e-5);
  }
}

TEST(BatchNorm, InUseScalesAndShiftsByTheRunningStatistics) {
  Shapes shapes;
  for (int round = 0; round < 40; ++round) {
    const int64_t channels = 1 + shapes.below(40);
    const bool affine = shapes.below(2) == 1;
    const Shape shape = shapes.next(channels, false);
    SCOPED_TRACE(shape.str());
    LayerRig rig(layer(LayerKind::batch_norm, {{"channels", channels}, {"affine", affine}}), shape);
    const auto x = random_values(shape.count(), 40 + static_cast<uint64_t>(round), 2.0f);
    Values a = rig.weight("running_var"), b = rig.weight("running_mean");
    for (size_t c = 0; c < a.size(); ++c) {
      a[c] = (affine ? rig.weight("gamma")[c] : 1) / std::sqrt(a[c] + 1e-5);
      b[c] = (affine ? rig.weight("beta")[c] : 0) - b[c] * a[c];
    }
    Values want = doubles(x);
    scale_channels(want, shape, a, b);
    expect_near(rig.run(x, shape), want, 1e-5);
  }
}

TEST(Dropout, PassesItsInputOnOutsideTraining) {
  for (const char* form : {"elementwise", "channel", "alpha"}) {
    LayerRig rig(layer(LayerKind::dropout, {{"rate", 0.9}, {"form", form}}), Shape{2, 3, 4});
    const auto x = random_values(24, 7);
    EXPECT_EQ(rig.run(x, Shape{2, 3, 4}), x) << form;
  }
}

struct Refused {
  LayerKind kind;
  std::vector<Field> fields;
  Shape input;
  const char* message;
};

TEST(ChannelLayers, RefuseInputsThatDoNotFit) {
  using K = LayerKind;
  const std::vector<Refused> cases = {
      {K::batch_norm,
       {{"channels", 4}},
       Shape{8, 3},
       "BatchNorm: input [8, 3] must be [batch, 4, ...]"},
      {K::batch_norm, {{"channels", 4}}, Shape{4}, "BatchNorm: input [4] must be [batch, 4, ...]"},
      {K::group_norm,
       {{"channels", 6}},
       Shape{2, 5, 6},
       "GroupNorm: input [2, 5, 6] must be [batch, 6, ...]"},
      {K::group_norm,
       {{"channels", 6}, {"groups", 4}},
       Shape{2, 6},
       "GroupNorm: groups 4 must divide channels 6"},
      {K::instance_norm,
       {{"channels", 6}},
       Shape{2, 6},
       "InstanceNorm: input [2, 6] must be [batch, 6, ...], with an extent after the channels"},
      {K::instance_norm,
       {{"channels", 6}},
       Shape{2, 6, 1, 1},
       "InstanceNorm: input [2, 6, 1, 1] has one value per channel, which leaves nothing when its "
       "mean is taken off; it must have more"},
      {K::dropout,
       {{"form", "rows"}},
       Shape{2, 6},
       "Dropout: unknown form 'rows'; known are elementwise, channel, alpha"},
      {K::dropout,
       {{"form", "channel"}},
       Shape{2, 6},
       "Dropout: input [2, 6] must be [batch, channels, ...] to leave out whole channels"},
  };
  for (const Refused& c : cases) {
    const Result<Shape> shape = infer_shape(layer(c.kind, c.fields), c.input);
    ASSERT_FALSE(shape.ok()) << c.message;
    EXPECT_EQ(shape.error().message, c.message);
  }
}

}  // namespace
}  // namespace loom::core::test
