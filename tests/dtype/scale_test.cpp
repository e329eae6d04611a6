// The scale rules: each formula of spec/core.md 4.2 on small examples, and the effects of zeros,
// infinities, NaN and extreme magnitudes. The tests of EveryType hold for all dtypes alike.
#include "samples.hpp"

namespace loom::core {
namespace {

using test::kInf;
using test::kNan;

Scale scale_of(DType dtype, std::vector<float> values) {
  return choose_scale(dtype, values.data(), static_cast<int64_t>(values.size()));
}

TEST(ChooseScale, DividesTheLargestMagnitudeByTheLargestCode) {
  const struct {
    DType dtype;
    double top;
  } rows[] = {{DType::i8, 127},       {DType::i4, 7}, {DType::i16, 32767}, {DType::f8e4m3, 448},
              {DType::f8e5m2, 57344}, {DType::f4, 6}, {DType::e3m0, 16}};
  for (const auto& row : rows) {
    const Scale s = scale_of(row.dtype, {0.5f, -3.0f, 2.0f});
    EXPECT_EQ(s.step, static_cast<double>(static_cast<float>(3.0 / row.top)))
        << dtype_name(row.dtype);
    EXPECT_EQ(s.zero, 0.0);
  }
}

TEST(ChooseScale, KeepsWideIntegerStepsInFloat64) {
  EXPECT_EQ(scale_of(DType::i32, {-3.0f}).step, 3.0 / 2147483647.0);
  EXPECT_EQ(scale_of(DType::i64, {-3.0f}).step, 3.0 / 9007199254740991.0);
  EXPECT_EQ(scale_of(DType::u32, {-1.0f, 2.0f}).step, 3.0 / 4294967295.0);
}

TEST(ChooseScale, SpansZeroWithUnsignedTypes) {
  const struct {
    std::vector<float> values;
    double step, zero;
  } rows[] = {{{-1.0f, 2.0f}, 3.0 / 255, 85},
              {{1.0f, 2.0f}, 2.0 / 255, 0},
              {{-2.0f, -1.0f}, 2.0 / 255, 255}};
  for (const auto& row : rows) {
    const Scale s = scale_of(DType::u8, row.values);
    EXPECT_EQ(s.step, static_cast<double>(static_cast<float>(row.step)));
    EXPECT_EQ(s.zero, row.zero);
    EXPECT_EQ(simulate(DType::u8, 0.0, s), 0.0);
  }
}

TEST(ChooseScale, TakesTheMeanMagnitudeForTernaryInt2AndBinary) {
  for (const DType dtype : {DType::ternary, DType::i2, DType::binary}) {
    EXPECT_EQ(scale_of(dtype, {1.0f, -2.0f, 0.0f, 5.0f}).step, 2.0) << dtype_name(dtype);
  }
}

TEST(ChooseScale, KeepsTernaryWeightsExact) {
  const std::vector<float> x = {0.3f, 0.0f, -0.3f, 0.0f, 0.0f, 0.3f};
  for (const DType dtype : {DType::ternary, DType::i2}) {
    const Scale s = scale_of(dtype, x);
    EXPECT_EQ(s.step, static_cast<double>(0.3f));
    for (const float v : x) EXPECT_EQ(simulate(dtype, v, s), static_cast<double>(v));
  }
  EXPECT_EQ(scale_of(DType::ternary, {0.3f, 0.0f, 0.4f}).step,
            static_cast<double>(static_cast<float>((static_cast<double>(0.3f) + 0.4f) / 3)));
}

TEST(ChooseScale, KeepsBinaryWeightsExact) {
  std::vector<float> x(1000, 0.1f);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = -0.1f;
  EXPECT_EQ(scale_of(DType::binary, x).step, static_cast<double>(0.1f));
}

TEST(ChooseScale, FollowsTheBlockFormats) {
  EXPECT_EQ(scale_of(DType::q4_0, {0.0f, 4.0f, -2.0f}).step, -0.5);
  EXPECT_EQ(scale_of(DType::q8_0, {0.0f, 4.0f, -127.0f}).step, 1.0);
  EXPECT_EQ(scale_of(DType::nf4, {0.25f, -0.75f}).step, 0.75);
  const struct {
    float amax;
    double step;
  } mx[] = {{4.0f, 1.0}, {7.99f, 1.0}, {8.0f, 2.0}, {3.99f, 0.5}, {1e-45f, std::ldexp(1.0, -127)}};
  for (const auto& row : mx) EXPECT_EQ(scale_of(DType::mxfp4, {row.amax}).step, row.step);
}

TEST(ChooseScale, OfNvfp4ReproducesTheLargestValue) {
  const Scale s = scale_of(DType::nvfp4, {3.0f, -1.0f});
  EXPECT_NEAR(6 * s.step, 3.0, 1e-6);
}

TEST(ChooseScale, IsOneForTypesWithoutScale) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(scale_of(dtype, {7.0f}).step, 1.0);
  }
}

TEST(ChooseScale, ReadsEveryStrideThValue) {
  const std::vector<float> x = {1.0f, 100.0f, -2.0f, 100.0f, 1.5f, 100.0f};
  for (const DType dtype : test::all_dtypes()) {
    const std::vector<float> dense = {1.0f, -2.0f, 1.5f};
    const Scale a = choose_scale(dtype, x.data(), 3, 2), b = choose_scale(dtype, dense.data(), 3);
    EXPECT_EQ(a.step, b.step) << dtype_name(dtype);
    EXPECT_EQ(a.zero, b.zero) << dtype_name(dtype);
  }
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, MakesZerosOfZeros) {
  const std::vector<float> zeros(64, 0.0f);
  const Scale s = choose_scale(GetParam(), zeros.data(), 64);
  EXPECT_EQ(simulate(GetParam(), 0.0, s), 0.0);
  EXPECT_EQ(choose_scale(GetParam(), nullptr, 0).zero, 0.0);
}

TEST_P(EveryType, IgnoresInfinitiesAndNanWhenChoosingAScale) {
  const auto inf = static_cast<float>(kInf);
  const std::vector<float> x = {0.5f, inf, -1.25f, static_cast<float>(kNan), -inf};
  const Scale s = choose_scale(GetParam(), x.data(), 5);
  const std::vector<float> finite = {0.5f, -1.25f};
  EXPECT_EQ(s.step, choose_scale(GetParam(), finite.data(), 2).step);
  EXPECT_EQ(s.zero, choose_scale(GetParam(), finite.data(), 2).zero);
}

TEST_P(EveryType, ClampsInfinitiesUnlessItIsAnIeeeType) {
  const std::vector<float> x = {0.5f, -1.25f, 1.0f};
  const Scale s = choose_scale(GetParam(), x.data(), 3);
  const bool ieee = dtype_info(GetParam()).kind == NumberKind::ieee;
  for (const double v : {kInf, -kInf}) {
    const double got = simulate(GetParam(), v, s);
    EXPECT_EQ(std::isinf(got), ieee);
    if (ieee) continue;
    EXPECT_LE(std::fabs(got), 2.6) << got;
    EXPECT_GE(got * (v > 0 ? 1 : -1), 0.4) << got;
  }
}

TEST_P(EveryType, ReadsNanAsNanOrAsItsZero) {
  const std::vector<float> x = {0.5f, -1.25f};
  const double got = simulate(GetParam(), kNan, choose_scale(GetParam(), x.data(), 2));
  const DTypeInfo& info = dtype_info(GetParam());
  if (info.kind == NumberKind::ieee || (info.kind == NumberKind::fp && info.bits == 8)) {
    EXPECT_TRUE(std::isnan(got));
  } else {
    EXPECT_EQ(got, simulate(GetParam(), 0.0, choose_scale(GetParam(), x.data(), 2)));
  }
}

TEST_P(EveryType, StaysFiniteOnTheSmallestAndLargestFloats) {
  for (const float a : {1e-45f, 1e-40f, 1.17549435e-38f, 1e30f, 3.4028235e38f}) {
    const std::vector<float> x = {a, -a, a / 3};
    const Scale s = choose_scale(GetParam(), x.data(), 3);
    for (const float v : x) {
      const double got = simulate(GetParam(), static_cast<double>(v), s);
      const bool overflows = GetParam() == DType::f16 || GetParam() == DType::bf16;
      EXPECT_TRUE(std::isfinite(got) || (overflows && a > 65504)) << v;
      if (!overflows) {
        EXPECT_LE(std::fabs(got), 2.0 * static_cast<double>(a)) << v;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

}  // namespace
}  // namespace loom::core
