// Pool: accepted and refused shapes, and its values for a few windows. Goldens of PyTorch:
// tests/gradients.
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

using Fields = std::vector<Field>;
using List = std::vector<int64_t>;

std::string shape_or_error(LayerKind kind, const Fields& fields, const Shape& in) {
  const Result<LayerConfig> made = make_layer(kind, fields);
  if (!made.ok()) return made.error().message;
  const Result<Shape> shape = infer_shape(*made, in);
  return shape.ok() ? shape->str() : shape.error().message;
}

TEST(PoolLayer, InfersItsShapeOrSaysWhatIsWrong) {
  struct Case {
    Fields fields;
    Shape in;
    std::string want;
  };
  const std::vector<Case> cases = {
      {{}, {2, 3, 8}, "[2, 3, 4]"},
      {{}, {2, 3, 8, 5}, "[2, 3, 4, 2]"},
      {{}, {2, 3, 4, 8, 5}, "[2, 3, 2, 4, 2]"},
      {{{"ceil", true}}, {2, 3, 8, 5}, "[2, 3, 4, 3]"},
      {{{"kernel", 3}, {"stride", 2}, {"padding", 1}}, {1, 1, 56, 56}, "[1, 1, 28, 28]"},
      // As in PyTorch, no window begins after the input.
      {{{"kernel", 1}, {"stride", 3}, {"ceil", true}}, {1, 1, 5}, "[1, 1, 2]"},
      {{{"kernel", 3}, {"stride", 1}, {"padding", List{2, 0}}}, {1, 1, 5}, "[1, 1, 5]"},
      {{{"kernel", 2}, {"dilation", 3}, {"stride", 1}}, {1, 1, 5}, "[1, 1, 2]"},
      {{{"output", 1}}, {2, 3, 8, 5}, "[2, 3, 1, 1]"},
      {{{"output", List{3, 7}}}, {2, 3, 8, 5}, "[2, 3, 3, 7]"},
      {{}, {2, 8}, "Pool: input [2, 8] must be [batch, channels, one to three extents]"},
      {{{"kind", "mean"}}, {2, 3, 8}, "Pool: unknown kind 'mean'; known are max, average, lp"},
      {{{"kernel", 9}},
       {2, 3, 8},
       "Pool: a kernel of 9 does not fit an extent of 8 with padding 0"},
      {{{"kernel", List{2, 2}}}, {2, 3, 8}, "Pool: kernel has 2 numbers, must have 1 or 1"},
      {{{"padding", List{1, 1, 1}}}, {2, 3, 8}, "Pool: padding has 3 numbers, must have 1, 1 or 2"},
      {{{"padding", 2}}, {2, 3, 8}, "Pool: padding 2 must be below what a kernel of 2 reaches, 2"},
      {{{"p", 3}}, {2, 3, 8}, "Pool: p is 3, must be from 1 to 2"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(shape_or_error(LayerKind::pool, c.fields, c.in), c.want);
  }
}

TEST(PoolLayer, TakesTheLargestTheAverageOrTheNorm) {
  const std::vector<float> x = {1, -3, 2, 5, 4, -4};
  const auto pooled = [&](const Fields& fields) {
    LayerRig rig(layer(LayerKind::pool, fields), Shape{1, 1, 6});
    return rig.run(x, Shape{1, 1, 6});
  };
  using Values = std::vector<float>;
  EXPECT_EQ(pooled({}), (Values{1, 5, 4}));
  EXPECT_EQ(pooled({{"kind", "average"}}), (Values{-1, 3.5f, 0}));
  EXPECT_EQ(pooled({{"kind", "average"}, {"kernel", 3}, {"padding", 1}}), (Values{-1, 11.0f / 3}));
  EXPECT_EQ(pooled({{"kind", "average"}, {"kernel", 4}, {"padding", List{2, 0}}}),
            (Values{-1, 1.75f}));
  EXPECT_EQ(
      pooled(
          {{"kind", "average"}, {"kernel", 4}, {"padding", List{2, 0}}, {"include_padding", true}}),
      (Values{-0.5f, 1.75f}));
  EXPECT_EQ(pooled({{"kind", "lp"}, {"p", 1}}), (Values{4, 7, 8}));
  EXPECT_EQ(pooled({{"kind", "lp"}, {"kernel", 2}, {"stride", 4}}),
            (Values{std::sqrt(10.0f), std::sqrt(32.0f)}));
  EXPECT_EQ(pooled({{"output", 1}}), (Values{5}));
  EXPECT_EQ(pooled({{"kind", "average"}, {"output", 4}}), (Values{-1, -0.5f, 4.5f, 0}));
}

}  // namespace
}  // namespace loom::core::test
