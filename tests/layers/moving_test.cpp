// Flatten, Reshape, Permute, Pad, Upsample and PixelShuffle: accepted and refused shapes, and
// values against formulas over coordinates. Goldens of PyTorch: tests/gradients.
#include <array>

#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

using Fields = std::vector<Field>;
using List = std::vector<int64_t>;
using K = LayerKind;

TEST(MovingLayers, InferTheirShapesOrSayWhatIsWrong) {
  struct Case {
    LayerKind kind;
    Fields fields;
    Shape in;
    std::string want;
  };
  const std::vector<Case> cases = {
      {K::flatten, {}, {2, 3, 4, 5}, "[2, 60]"},
      {K::flatten, {{"first", 2}}, {2, 3, 4, 5}, "[2, 3, 20]"},
      {K::flatten,
       {{"first", 3}},
       {2, 3, 4},
       "Flatten: input [2, 3, 4] has no axis 3: first must be below its 3 axes"},
      {K::reshape, {{"shape", List{4, -1}}}, {2, 3, 8}, "[2, 4, 6]"},
      {K::reshape, {{"shape", 24}}, {2, 3, 8}, "[2, 24]"},
      {K::reshape,
       {{"shape", List{5, -1}}},
       {2, 3, 8},
       "Reshape: the 24 values of a sample of [2, 3, 8] do not fill [2, 5, -1]"},
      {K::reshape,
       {{"shape", List{-1, -1}}},
       {2, 3, 8},
       "Reshape: only one extent of shape may be -1, and none 0"},
      {K::reshape,
       {{"shape", List{0, 24}}},
       {2, 3, 8},
       "Reshape: only one extent of shape may be -1, and none 0"},
      {K::reshape, {}, {2, 3, 8}, "Reshape: shape has 0 extents, must have 1 to 5"},
      {K::permute, {{"axes", List{1, 2, 0}}}, {2, 3, 4, 5}, "[2, 4, 5, 3]"},
      {K::permute,
       {{"axes", List{1, 1, 0}}},
       {2, 3, 4, 5},
       "Permute: axes must name each axis of a sample of [2, 3, 4, 5] once, counted from 0 without "
       "the batch"},
      {K::permute,
       {{"axes", List{1, 0}}},
       {2, 3, 4, 5},
       "Permute: axes must name each axis of a sample of [2, 3, 4, 5] once, counted from 0 without "
       "the batch"},
      {K::pad, {{"before", 1}, {"after", List{2, 0}}}, {2, 3, 4}, "[2, 5, 5]"},
      {K::pad, {}, {2, 3, 4}, "[2, 3, 4]"},
      {K::pad,
       {{"before", List{1, 1, 1}}},
       {2, 3, 4},
       "Pad: before has 3 numbers, a sample of [2, 3, 4] has 2 axes"},
      {K::pad,
       {{"before", 4}, {"mode", "reflect"}},
       {2, 3, 4},
       "Pad: reflect can put no more than 3 places around an extent of 4, not 4"},
      {K::pad,
       {{"after", 5}, {"mode", "wrap"}},
       {2, 3, 4},
       "Pad: wrap can put no more than 4 places around an extent of 4, not 5"},
      {K::pad,
       {{"mode", "mirror"}},
       {2, 3, 4},
       "Pad: unknown mode 'mirror'; known are constant, reflect, edge, wrap"},
      {K::upsample, {}, {2, 3, 4, 5}, "[2, 3, 8, 10]"},
      {K::upsample, {{"output", List{3, 7}}}, {2, 3, 4, 5}, "[2, 3, 3, 7]"},
      {K::upsample,
       {{"factor", List{1, 2, 3}}},
       {2, 3, 4, 5},
       "Upsample: factor has 3 numbers, must have 1 or 2"},
      {K::upsample,
       {{"mode", "cubic"}},
       {2, 3, 4},
       "Upsample: unknown mode 'cubic'; known are nearest, linear"},
      {K::upsample,
       {},
       {2, 3},
       "Upsample: input [2, 3] must be [batch, channels, one to three extents]"},
      {K::pixel_shuffle, {}, {2, 8, 4, 5}, "[2, 2, 8, 10]"},
      {K::pixel_shuffle, {{"inverse", true}}, {2, 2, 8, 10}, "[2, 8, 4, 5]"},
      {K::pixel_shuffle,
       {{"factor", 3}},
       {2, 8, 4, 5},
       "PixelShuffle: the 8 channels of [2, 8, 4, 5] must be a multiple of 9"},
      {K::pixel_shuffle,
       {{"inverse", true}},
       {2, 2, 8, 5},
       "PixelShuffle: extent 5 of [2, 2, 8, 5] must be a multiple of 2"},
      {K::pixel_shuffle,
       {},
       {2, 8, 2, 2, 2},
       "PixelShuffle: input [2, 8, 2, 2, 2] must be [batch, channels, one or two extents]"},
  };
  for (const Case& c : cases) {
    const Result<LayerConfig> made = make_layer(c.kind, c.fields);
    ASSERT_TRUE(made.ok()) << made.error().str();
    const Result<Shape> shape = infer_shape(*made, c.in);
    EXPECT_EQ(shape.ok() ? shape->str() : shape.error().message, c.want) << made->def->name;
  }
}

std::vector<float> through(LayerKind kind, const Fields& fields, const Shape& in,
                           const std::vector<float>& x) {
  LayerRig rig(layer(kind, fields), in);
  return rig.run(x, in);
}

std::vector<float> counted(int64_t n) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(i));
  return x;
}

using Out = std::vector<float>;

TEST(MovingLayers, GiveTheseValues) {
  const Shape row{1, 1, 4};
  const std::vector<float> x = counted(4);
  EXPECT_EQ(through(K::flatten, {}, {1, 2, 2}, x), x);
  EXPECT_EQ(through(K::reshape, {{"shape", List{4, 1}}}, {1, 2, 2}, x), x);
  EXPECT_EQ(through(K::permute, {{"axes", List{1, 0}}}, {1, 2, 2}, x), (Out{0, 2, 1, 3}));
  const Fields ends = {{"before", 2}, {"after", 3}};
  const auto padded = [&](const char* mode) {
    Fields fields = ends;
    fields.emplace_back("mode", mode);
    return through(K::pad, fields, row, x);
  };
  EXPECT_EQ(padded("constant"), (Out{0, 0, 0, 1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(padded("reflect"), (Out{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(padded("edge"), (Out{0, 0, 0, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(padded("wrap"), (Out{2, 3, 0, 1, 2, 3, 0, 1, 2}));
  EXPECT_EQ(through(K::upsample, {}, row, x), (Out{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(through(K::upsample, {{"output", 6}}, row, x), (Out{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(through(K::upsample, {{"mode", "linear"}}, row, x),
            (Out{0, 0.25f, 0.75f, 1.25f, 1.75f, 2.25f, 2.75f, 3}));
  EXPECT_EQ(
      through(K::upsample, {{"mode", "linear"}, {"output", 7}, {"align_corners", true}}, row, x),
      (Out{0, 0.5f, 1, 1.5f, 2, 2.5f, 3}));
  EXPECT_EQ(through(K::pixel_shuffle, {}, {1, 2, 2}, x), (Out{0, 2, 1, 3}));
  EXPECT_EQ(through(K::pixel_shuffle, {{"inverse", true}}, {1, 1, 4}, x), (Out{0, 2, 1, 3}));
}

// The input position and the value of output `o`, by the formulas of the layer.
double linear_at(const std::vector<float>& x, int64_t o, int64_t out, bool align) {
  const auto n = static_cast<int64_t>(x.size());
  double at =
      (static_cast<double>(o) + 0.5) * static_cast<double>(n) / static_cast<double>(out) - 0.5;
  if (align) {
    at = out == 1
             ? 0
             : static_cast<double>(o) * static_cast<double>(n - 1) / static_cast<double>(out - 1);
  }
  at = std::min(std::max(at, 0.0), static_cast<double>(n - 1));
  const auto low = static_cast<size_t>(at);
  const double high = x[std::min<size_t>(low + 1, x.size() - 1)];
  return x[low] + (at - static_cast<double>(low)) * (high - x[low]);
}

TEST(MovingLayers, UpsampleIsItsFormulaForEveryPairOfExtents) {
  for (const int64_t in : {1, 2, 3, 5, 8}) {
    for (const int64_t out : {1, 2, 4, 7, 12}) {
      const std::vector<float> x = random_values(in, static_cast<uint64_t>(in));
      for (const bool align : {false, true}) {
        Values want;
        for (int64_t o = 0; o < out; ++o) want.push_back(linear_at(x, o, out, align));
        const Fields fields = {{"mode", "linear"}, {"output", out}, {"align_corners", align}};
        expect_near(through(K::upsample, fields, {1, 1, in}, x), want, 1e-6);
      }
      Values nearest;
      for (int64_t o = 0; o < out; ++o) nearest.push_back(x[static_cast<size_t>(o * in / out)]);
      expect_near(through(K::upsample, {{"output", out}}, {1, 1, in}, x), nearest, 0);
    }
  }
}

// The input index that a padded position copies; -1 means none.
int64_t source_of(int64_t at, int64_t n, const std::string& mode) {
  if (at >= 0 && at < n) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : n - 1;
  if (mode == "wrap") return (at + n) % n;
  return at < 0 ? -at : 2 * (n - 1) - at;
}

TEST(MovingLayers, PadTakesEachValueFromWhereItsModeSays) {
  const Rng rng(3, 9);
  uint64_t next = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(rng.bits(next++) % static_cast<uint64_t>(n));
  };
  for (int i = 0; i < 40; ++i) {
    const std::string mode = std::array{"constant", "reflect", "edge", "wrap"}[below(4)];
    const Shape in{2, 1 + below(3), 2 + below(5), 2 + below(5)};
    List before, after;
    Shape out = in;
    for (int axis = 1; axis < 4; ++axis) {
      const int64_t most = mode == "reflect" ? in[axis] : in[axis] + 1;
      before.push_back(below(most));
      after.push_back(below(most));
      out[axis] += before.back() + after.back();
    }
    const std::vector<float> x = random_values(in.count(), static_cast<uint64_t>(i));
    const auto y = through(
        K::pad, {{"before", before}, {"after", after}, {"mode", mode}, {"value", 7.5}}, in, x);
    ASSERT_EQ(static_cast<int64_t>(y.size()), out.count());
    for (int64_t at = 0; at < out.count(); ++at) {
      int64_t rest = at, from = 0, stride = 1;
      bool inside = true;
      for (int axis = 3; axis >= 1; --axis) {
        const int64_t flat_index = rest % out[axis] - before[static_cast<size_t>(axis - 1)];
        const int64_t source = source_of(flat_index, in[axis], mode);
        inside = inside && source >= 0;
        from += source * stride;
        rest /= out[axis];
        stride *= in[axis];
      }
      from += rest * stride;
      const float want = inside ? x[static_cast<size_t>(from)] : 7.5f;
      ASSERT_EQ(y[static_cast<size_t>(at)], want) << mode << " " << in.str() << " at " << at;
    }
  }
}

TEST(MovingLayers, PixelShuffleIsUndoneByItsInverse) {
  for (const Shape& in : {Shape{2, 12, 3, 5}, Shape{3, 8, 1, 2}, Shape{2, 6, 7}}) {
    const std::vector<float> x = random_values(in.count(), 5);
    LayerRig there(layer(K::pixel_shuffle, {}), in);
    const std::vector<float> y = there.run(x, in);
    Shape wide = in;
    for (int axis = 2; axis < in.rank(); ++axis) wide[axis] *= 2, wide[1] /= 2;
    EXPECT_NE(y, x);
    EXPECT_EQ(through(K::pixel_shuffle, {{"inverse", true}}, wide, y), x) << in.str();
  }
}

TEST(MovingLayers, PermuteIsUndoneByTheInverseOrder) {
  const Shape in{2, 3, 4, 5}, transposed{2, 5, 3, 4};
  const std::vector<float> x = random_values(in.count(), 6);
  const auto y = through(K::permute, {{"axes", List{2, 0, 1}}}, in, x);
  EXPECT_NE(y, x);
  EXPECT_EQ(through(K::permute, {{"axes", List{1, 2, 0}}}, transposed, y), x);
}

}  // namespace
}  // namespace loom::core::test
