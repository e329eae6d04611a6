// FP8 and FP4 against the OCP definitions, E3M0 and NF4 against their lists: every code, every
// rounding boundary in f32 and f64 steps, saturation and specials. mxfp4 and nvfp4 share the
// elements of fp4; their scales are tested in scale_test.cpp.
#include "samples.hpp"

namespace loom::core {
namespace {

using test::above;
using test::below;
using test::kInf;
using test::kNan;
using test::same;

struct SmallFormat {
  const char* name;
  DType dtype;
  int bits;
  int mantissa;
  int bias;
  uint32_t largest;  // field of the largest finite number
  uint32_t nan;      // code of NaN, or 0 where there is none

  uint32_t sign() const { return 1u << (bits - 1); }
  double closed_form(uint32_t code) const {
    const uint32_t field = code & (sign() - 1);
    const double s = (code & sign()) != 0 ? -1.0 : 1.0;
    if (dtype == DType::f8e5m2 && field == 0x7c) return s * kInf;
    if (field > largest) return kNan;
    const int e = static_cast<int>(field >> mantissa);
    const double m = std::ldexp(static_cast<double>(field & ((1u << mantissa) - 1)), -mantissa);
    return s * (e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias));
  }
};

void PrintTo(const SmallFormat& f, std::ostream* os) {
  *os << f.name;
}

class SmallFloat : public testing::TestWithParam<SmallFormat> {};

TEST_P(SmallFloat, DecodesEveryCodeAsDefined) {
  for (uint32_t code = 0; code < 2 * GetParam().sign(); ++code) {
    ASSERT_TRUE(same(decode_value(GetParam().dtype, code), GetParam().closed_form(code)))
        << std::hex << code;
  }
}

TEST_P(SmallFloat, GivesEveryFiniteCodeBackUnchanged) {
  for (uint32_t code = 0; code < 2 * GetParam().sign(); ++code) {
    const double value = decode_value(GetParam().dtype, code);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(encode_value(GetParam().dtype, value), code) << std::hex << code;
  }
}

TEST_P(SmallFloat, RoundsEveryMidpointToEvenAndItsNeighboursToTheirSide) {
  const SmallFormat& f = GetParam();
  for (uint32_t code = 0; code < f.largest; ++code) {
    const double middle = (f.closed_form(code) + f.closed_form(code + 1)) / 2;
    // Without mantissa bits no digit is even, and IEEE 754 takes the larger; 0 is even.
    const bool up = f.mantissa > 0 ? (code & 1) != 0 : code > 0;
    const uint32_t tie = up ? code + 1 : code;
    ASSERT_EQ(encode_value(f.dtype, middle), tie) << code;
    ASSERT_EQ(encode_value(f.dtype, -middle), tie | f.sign()) << code;
    for (const double more :
         {above(middle), static_cast<double>(above(static_cast<float>(middle)))}) {
      ASSERT_EQ(encode_value(f.dtype, more), code + 1) << code;
      ASSERT_EQ(encode_value(f.dtype, -more), (code + 1) | f.sign()) << code;
    }
    for (const double less :
         {below(middle), static_cast<double>(below(static_cast<float>(middle)))}) {
      ASSERT_EQ(encode_value(f.dtype, less), code) << code;
      ASSERT_EQ(encode_value(f.dtype, -less), code | f.sign()) << code;
    }
  }
}

TEST_P(SmallFloat, SaturatesAboveItsLargestNumber) {
  const SmallFormat& f = GetParam();
  const double largest = f.closed_form(f.largest);
  for (const double v :
       {largest, above(largest), 1.5 * largest, 2 * largest, 3.4e38, 1e300, kInf}) {
    EXPECT_EQ(encode_value(f.dtype, v), f.largest) << v;
    EXPECT_EQ(encode_value(f.dtype, -v), f.largest | f.sign()) << v;
  }
}

TEST_P(SmallFloat, KeepsSignedZeroAndFlushesWhatIsTooSmall) {
  for (const double v : {0.0, 5e-324, 1e-40, 1e-12}) {
    EXPECT_EQ(encode_value(GetParam().dtype, v), 0u) << v;
    EXPECT_EQ(encode_value(GetParam().dtype, -v), GetParam().sign()) << v;
  }
}

TEST_P(SmallFloat, TurnsNanIntoItsNanOrIntoZero) {
  EXPECT_EQ(encode_value(GetParam().dtype, kNan), GetParam().nan);
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallFloat,
                         testing::Values(SmallFormat{"e4m3", DType::f8e4m3, 8, 3, 7, 0x7e, 0x7f},
                                         SmallFormat{"e5m2", DType::f8e5m2, 8, 2, 15, 0x7b, 0x7e},
                                         SmallFormat{"e2m1", DType::f4, 4, 1, 1, 7, 0},
                                         SmallFormat{"mxfp4", DType::mxfp4, 4, 1, 1, 7, 0},
                                         SmallFormat{"nvfp4", DType::nvfp4, 4, 1, 1, 7, 0},
                                         SmallFormat{"e3m0", DType::e3m0, 4, 0, 3, 7, 0}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Fp8, FunctionsAgreeWithTheCodecOnAnyBitPattern) {
  const Rng rng(5, 1);
  for (uint64_t i = 0; i < 200000; ++i) {
    const float x = f32_from_bits(rng.bits(i));
    const double wide = static_cast<double>(x);
    ASSERT_EQ(e4m3_from_f32(x), encode_value(DType::f8e4m3, wide)) << x;
    ASSERT_EQ(e5m2_from_f32(x), encode_value(DType::f8e5m2, wide)) << x;
    ASSERT_EQ(e2m1_from_f32(x), encode_value(DType::f4, wide)) << x;
  }
  for (uint32_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    EXPECT_TRUE(same(static_cast<double>(f32_from_e4m3(byte)), decode_value(DType::f8e4m3, code)));
    EXPECT_TRUE(same(static_cast<double>(f32_from_e5m2(byte)), decode_value(DType::f8e5m2, code)));
  }
  for (uint8_t code = 0; code < 16; ++code) {
    EXPECT_TRUE(same(static_cast<double>(f32_from_e2m1(code)), decode_value(DType::f4, code)));
  }
}

TEST(Fp8, LimitsAreThoseOfTheOcpTables) {
  EXPECT_EQ(f32_from_e4m3(0x7e), 448.0f);
  EXPECT_EQ(f32_from_e4m3(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(f32_from_e4m3(0x07), std::ldexp(0.875f, -6));
  EXPECT_EQ(f32_from_e4m3(0x01), std::ldexp(1.0f, -9));
  EXPECT_TRUE(std::isnan(f32_from_e4m3(0x7f)));
  EXPECT_TRUE(std::isnan(f32_from_e4m3(0xff)));
  EXPECT_EQ(f32_from_e5m2(0x7b), 57344.0f);
  EXPECT_EQ(f32_from_e5m2(0x04), std::ldexp(1.0f, -14));
  EXPECT_EQ(f32_from_e5m2(0x01), std::ldexp(1.0f, -16));
  EXPECT_EQ(f32_from_e5m2(0x7c), std::numeric_limits<float>::infinity());
  for (const uint8_t code : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}) {
    EXPECT_TRUE(std::isnan(f32_from_e5m2(code)));
  }
}

TEST(Fp8, WithoutSaturationOverflowsToNanOrInfinityAfterRounding) {
  const float inf = std::numeric_limits<float>::infinity();
  const struct {
    float value;
    uint8_t e4m3;
    uint8_t e5m2;
  } rows[] = {{448.0f, 0x7e, 0x5f},    {464.0f, 0x7e, 0x5f},   {above(464.0f), 0x7f, 0x5f},
              {896.0f, 0x7f, 0x63},    {57344.0f, 0x7f, 0x7b}, {below(61440.0f), 0x7f, 0x7b},
              {61440.0f, 0x7f, 0x7c},  {1e30f, 0x7f, 0x7c},    {inf, 0x7f, 0x7c},
              {-61440.0f, 0xff, 0xfc}, {-inf, 0xff, 0xfc},     {-1.0f, 0xb8, 0xbc}};
  for (const auto& row : rows) {
    EXPECT_EQ(e4m3_from_f32(row.value, false), row.e4m3) << row.value;
    EXPECT_EQ(e5m2_from_f32(row.value, false), row.e5m2) << row.value;
  }
}

TEST(Fp8, NanKeepsItsSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(e4m3_from_f32(nan), 0x7f);
  EXPECT_EQ(e4m3_from_f32(std::copysign(nan, -1.0f)), 0xff);
  EXPECT_EQ(e5m2_from_f32(nan, false), 0x7e);
  EXPECT_EQ(e5m2_from_f32(std::copysign(nan, -1.0f)), 0xfe);
}

TEST(Fp4, ValuesAreTheListsOfTheSpecification) {
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double e3m0[] = {0, 0.25, 0.5, 1, 2, 4, 8, 16};
  for (uint64_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_value(DType::f4, code), e2m1[code]);
    EXPECT_EQ(decode_value(DType::f4, code | 8), -e2m1[code]);
    EXPECT_EQ(decode_value(DType::e3m0, code), e3m0[code]);
    EXPECT_EQ(decode_value(DType::e3m0, code | 8), -e3m0[code]);
  }
}

TEST(E8M0, IsAPowerOfTwoForEveryCodeButTheLast) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(f32_from_e8m0(static_cast<uint8_t>(code)), std::ldexp(1.0f, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(f32_from_e8m0(0xff)));
}

TEST(Nf4, HasTheLevelsOfTheSpecification) {
  const double levels[] = {-1,        -.6961928, -.5250731, -.3949175, -.2844414, -.1847734,
                           -.0910500, 0,         .0795803,  .1609302,  .2461123,  .3379152,
                           .4407098,  .5626170,  .7229568,  1};
  for (uint64_t code = 0; code < 16; ++code) {
    EXPECT_NEAR(decode_value(DType::nf4, code), levels[code], 5.1e-8) << code;
    EXPECT_EQ(encode_value(DType::nf4, decode_value(DType::nf4, code)), code);
  }
}

TEST(Nf4, ChoosesTheNearestLevelTiesToTheEvenCode) {
  for (uint64_t code = 0; code < 15; ++code) {
    const double middle = (decode_value(DType::nf4, code) + decode_value(DType::nf4, code + 1)) / 2;
    EXPECT_EQ(encode_value(DType::nf4, middle), (code & 1) == 0 ? code : code + 1);
    EXPECT_EQ(encode_value(DType::nf4, above(middle)), code + 1);
    EXPECT_EQ(encode_value(DType::nf4, below(middle)), code);
  }
}

TEST(Nf4, SaturatesAndReadsNanAsZero) {
  EXPECT_EQ(encode_value(DType::nf4, kInf), 15u);
  EXPECT_EQ(encode_value(DType::nf4, -kInf), 0u);
  EXPECT_EQ(encode_value(DType::nf4, kNan), 7u);
  EXPECT_EQ(decode_value(DType::nf4, 7), 0.0);
}

}  // namespace
}  // namespace loom::core
