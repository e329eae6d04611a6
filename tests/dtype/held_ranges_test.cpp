// Frozen row scales (FrozenRanges): a scale is kept while the new range is inside the held one and
// has shrunk by at most the band. Otherwise it is computed again. Tests of EveryType hold for all
// dtypes alike.
#include "base/text.hpp"
#include "samples.hpp"

namespace loom::core {
namespace {

using Bytes = std::vector<std::byte>;

// A matrix of `rows` equal rows, each of 40 values from `pattern` times `factor`.
struct Matrix {
  Matrix(DType dtype, const std::vector<float>& pattern, float factor, int64_t rows = 3)
      : g(r16_geometry(dtype, rows, 40)) {
    for (int64_t i = 0; i < rows * 40; ++i) {
      x.push_back(pattern[static_cast<size_t>(i % 40) % pattern.size()] * factor);
    }
  }
  Bytes pack(const FrozenRanges& held, ScaleScope scope = ScaleScope::per_row) const {
    Bytes data(static_cast<size_t>(g.bytes()));
    const TensorRange range = tensor_range(x.data(), g.rows * g.cols);
    r16_pack(g, x.data(), 0, g.rows, scope, range, data.data(), held);
    return data;
  }
  Bytes pack() const { return pack({}); }
  // Everything before the codes of a group: scales and zero points.
  Bytes head(const Bytes& data) const { return Bytes(data.begin(), data.begin() + g.block_scales); }

  R16 g;
  std::vector<float> x;
};

const std::vector<float> kThree = {8.0f, 0.0f, -8.0f, 0.0f};
const std::vector<float> kMixed = {8.0f, 0.5f, -2.0f, -7.25f, 3.0f};

class HeldRange : public testing::TestWithParam<DType> {
 protected:
  bool holds() const { return r16_frozen_values(GetParam()) > 0; }
  // Memory for held ranges: none yet.
  FrozenRanges none() {
    values_.assign(static_cast<size_t>(3 * std::max(r16_frozen_values(GetParam()), 1)), 0.0f);
    return {values_.data(), 0.125f};
  }
  std::vector<float> values_;
};
INSTANTIATE_TEST_SUITE_P(EveryType, HeldRange, testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

TEST_P(HeldRange, IsThatOfTheTableOfScaleRules) {
  const DTypeInfo& info = dtype_info(GetParam());
  const bool per_row = info.scale == ScaleRule::row || info.scale == ScaleRule::absmean ||
                       info.scale == ScaleRule::meanabs;
  EXPECT_EQ(r16_frozen_values(GetParam()), info.affine() ? 2 : per_row ? 1 : 0);
}

TEST_P(HeldRange, IsTakenFromTheFirstPacking) {
  for (const std::vector<float>& pattern : {kThree, kMixed}) {
    const Matrix m(GetParam(), pattern, 1.0f);
    const FrozenRanges held = none();
    EXPECT_EQ(m.pack(held), m.pack());
    EXPECT_EQ(values_[0] != 0, holds());
    EXPECT_EQ(m.pack(held), m.pack()) << "again";
  }
}

TEST_P(HeldRange, KeepsTheScaleOfARowThatShrinksByAnEighth) {
  const Matrix before(GetParam(), kThree, 1.0f), after(GetParam(), kThree, 0.875f);
  const FrozenRanges held = none();
  const Bytes first = before.pack(held);
  const std::vector<float> kept = values_;
  const Bytes second = after.pack(held);
  EXPECT_EQ(values_, kept);
  if (holds()) {
    EXPECT_EQ(after.head(second), before.head(first));
  } else {
    EXPECT_EQ(second, after.pack());
  }
}

TEST_P(HeldRange, KeepsTheScaleThroughManySmallShrinksAndNoFurther) {
  if (!holds()) return;
  const FrozenRanges held = none();
  const Bytes first = Matrix(GetParam(), kMixed, 1.0f).pack(held);
  for (const float factor : {0.97f, 0.94f, 0.91f, 0.95f, 0.88f}) {
    const Matrix m(GetParam(), kMixed, factor);
    EXPECT_EQ(m.head(m.pack(held)), m.head(first)) << factor;
  }
  const Matrix small(GetParam(), kMixed, 0.87f);
  EXPECT_EQ(small.pack(held), small.pack());
}

TEST_P(HeldRange, FollowsWhateverGrows) {
  const FrozenRanges held = none();
  for (const float factor : {1.0f, 1.0001f, 1.5f, 1.5001f}) {
    const Matrix m(GetParam(), kMixed, factor);
    EXPECT_EQ(m.pack(held), m.pack()) << factor;
  }
}

TEST_P(HeldRange, IsOneForTheWholeTensorWhenTheScaleIs) {
  if (!holds()) return;
  const FrozenRanges held = none();
  const Matrix before(GetParam(), kThree, 1.0f), after(GetParam(), kThree, 0.9f);
  const Bytes first = before.pack(held, ScaleScope::per_tensor);
  EXPECT_EQ(first, before.pack({}, ScaleScope::per_tensor));
  EXPECT_EQ(values_[static_cast<size_t>(r16_frozen_values(GetParam()))], 0.0f) << "of row 1";
  EXPECT_EQ(after.head(after.pack(held, ScaleScope::per_tensor)), before.head(first));
}

TEST_P(HeldRange, MeansNothingWhenItIsNoNumber) {
  for (const float bad : {NAN, INFINITY, -1.0f}) {
    const Matrix m(GetParam(), kMixed, 1.0f);
    const FrozenRanges held = none();
    std::fill(values_.begin(), values_.end(), bad);
    EXPECT_EQ(m.pack(held), m.pack()) << bad;
  }
}

TEST_P(HeldRange, HoldsUnderStochasticRounding) {
  if (!r16_can_dither(GetParam())) return;
  const R16Dither dither{1, 2, 3};
  const auto pack = [&](const Matrix& m, const FrozenRanges& held) {
    Bytes data(static_cast<size_t>(m.g.bytes()));
    r16_pack_stochastic(m.g, m.x.data(), 0, m.g.rows, dither, data.data(), held);
    return data;
  };
  const FrozenRanges held = none();
  const Matrix before(GetParam(), kMixed, 1.0f), after(GetParam(), kMixed, 0.9f);
  const Bytes first = pack(before, held);
  EXPECT_EQ(first, pack(before, {}));
  EXPECT_EQ(after.head(pack(after, held)), before.head(first));
}

// A zero point moves with either end of the range.
TEST(FrozenRanges, OfTypesWithAZeroPointHoldBothEnds) {
  float values[2] = {};
  const FrozenRanges held{values, 0.125f};
  const R16 g = r16_geometry(DType::u8, 1, 2);
  Bytes data(static_cast<size_t>(g.bytes()));
  const struct {
    float low, high, held_low, held_high;
  } rows[] = {
      {-4, 4, -4, 4},         {-3.5f, 4, -4, 4}, {-4, 3, -4, 4},  // shrinks by no more than 1 of 8
      {-4, 2.5f, -4, 2.5f},                                       // by more
      {-4.5f, 2, -4.5f, 2},                                       // grows at one end
      {-4, 2.25f, -4, 2.25f}, {1, 2, 0, 2},
  };
  for (const auto& row : rows) {
    const float x[2] = {row.low, row.high};
    r16_pack(g, x, 0, 1, ScaleScope::per_row, {}, data.data(), held);
    EXPECT_EQ(values[0], row.held_low) << row.low << ", " << row.high;
    EXPECT_EQ(values[1], row.held_high) << row.low << ", " << row.high;
  }
}

// A row that has shrunk permanently gets the finer steps.
TEST(FrozenRanges, NeverClampTheLargestWeightOfARow) {
  float value = 0;
  const R16 g = r16_geometry(DType::i4, 1, 1);
  Bytes data(static_cast<size_t>(g.bytes()));
  for (int i = 0; i < 1000; ++i) {
    const float x = 1.0f + 0.5f * static_cast<float>(std::sin(0.37 * i));
    r16_pack(g, &x, 0, 1, ScaleScope::per_row, {}, data.data(), {&value, 0.125f});
    EXPECT_LE(x, value);
    EXPECT_GE(x, 0.875f * value);
    float decoded = 0;
    r16_decode(g, data.data(), 0, 0, 1, &decoded);
    EXPECT_LE(std::fabs(decoded - x), value / 14);
  }
}

}  // namespace
}  // namespace loom::core
