// binary16 and bfloat16 against closed forms: every code, every rounding boundary, specials, and
// agreement of the f32 and f64 entry points.
// The oracle is the definition with ldexp, not another conversion.
#include "samples.hpp"

namespace loom::core {
namespace {

using test::above;
using test::below;
using test::kInf;
using test::kNan;
using test::same;

struct Format {
  const char* name;
  DType dtype;
  int mantissa;
  int bias;
  uint32_t infinity;
  uint16_t (*from_f32)(float);
  float (*to_f32)(uint16_t);

  // The definition: (-1)^s 2^(e-bias) (1+m/2^M), or without the 1 at e = 0.
  double closed_form(uint32_t code) const {
    const uint32_t field = code & 0x7fff;
    const double sign = (code & 0x8000) != 0 ? -1.0 : 1.0;
    if (field == infinity) return sign * kInf;
    if (field > infinity) return kNan;
    const int e = static_cast<int>(field >> mantissa);
    const double m = std::ldexp(static_cast<double>(field & ((1u << mantissa) - 1)), -mantissa);
    return sign * (e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias));
  }
};

void PrintTo(const Format& f, std::ostream* os) {
  *os << f.name;
}

class Ieee16 : public testing::TestWithParam<Format> {};

TEST_P(Ieee16, DecodesEveryCodeAsDefined) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const double want = GetParam().closed_form(code);
    const float got = GetParam().to_f32(static_cast<uint16_t>(code));
    ASSERT_TRUE(same(static_cast<double>(got), want)) << std::hex << code;
    ASSERT_TRUE(same(decode_value(GetParam().dtype, code), want)) << std::hex << code;
  }
}

TEST_P(Ieee16, GivesEveryCodeBackUnchanged) {
  const uint32_t quiet = 1u << (GetParam().mantissa - 1);
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const bool nan = (code & 0x7fff) > GetParam().infinity;
    const uint32_t want = nan ? code | quiet : code;
    const float value = GetParam().to_f32(static_cast<uint16_t>(code));
    ASSERT_EQ(GetParam().from_f32(value), want) << std::hex << code;
    ASSERT_EQ(encode_value(GetParam().dtype, decode_value(GetParam().dtype, code)), want)
        << std::hex << code;
  }
}

TEST_P(Ieee16, RoundsEveryMidpointToEvenAndItsNeighboursToTheirSide) {
  const Format& f = GetParam();
  for (uint32_t code = 0; code < f.infinity; ++code) {
    // The value after the largest finite one is where the next exponent would begin.
    const double low = f.closed_form(code);
    const double high =
        code + 1 < f.infinity ? f.closed_form(code + 1) : 2 * low - f.closed_form(code - 1);
    const double middle = (low + high) / 2;
    const uint32_t even = (code & 1) == 0 ? code : code + 1;
    const auto narrow = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(narrow), middle);
    ASSERT_EQ(f.from_f32(narrow), even) << std::hex << code;
    ASSERT_EQ(f.from_f32(above(narrow)), code + 1) << std::hex << code;
    ASSERT_EQ(f.from_f32(below(narrow)), code) << std::hex << code;
    ASSERT_EQ(f.from_f32(-narrow), even | 0x8000) << std::hex << code;
    ASSERT_EQ(f.from_f32(-above(narrow)), (code + 1) | 0x8000) << std::hex << code;
    ASSERT_EQ(encode_value(f.dtype, middle), even) << std::hex << code;
    ASSERT_EQ(encode_value(f.dtype, above(middle)), code + 1) << std::hex << code;
    ASSERT_EQ(encode_value(f.dtype, below(middle)), code) << std::hex << code;
    ASSERT_EQ(encode_value(f.dtype, -below(middle)), code | 0x8000) << std::hex << code;
  }
}

TEST_P(Ieee16, TreatsSpecialsAsIeee754Says) {
  const Format& f = GetParam();
  const struct {
    double value;
    uint32_t code;
  } rows[] = {{0.0, 0},
              {-0.0, 0x8000},
              {kInf, f.infinity},
              {-kInf, f.infinity | 0x8000},
              {3.4028234663852886e38, f.infinity},
              {1e300, f.infinity},
              {-1e300, f.infinity | 0x8000},
              {1e-300, 0},
              {-1e-300, 0x8000},
              {5e-324, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(encode_value(f.dtype, row.value), row.code) << row.value;
    EXPECT_EQ(f.from_f32(static_cast<float>(row.value)), row.code) << row.value;
  }
}

TEST_P(Ieee16, KeepsNanQuietWithSignAndPayload) {
  const Format& f = GetParam();
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff812345u, 0x7fffffffu}) {
    const uint16_t code = f.from_f32(f32_from_bits(bits));
    EXPECT_GT(code & 0x7fffu, f.infinity) << std::hex << bits;
    EXPECT_EQ(code >> 15, bits >> 31) << std::hex << bits;
    const uint32_t payload = (bits >> (23 - f.mantissa)) & ((1u << f.mantissa) - 1);
    EXPECT_EQ(code & ((1u << f.mantissa) - 1), payload | 1u << (f.mantissa - 1))
        << std::hex << bits;
  }
}

TEST_P(Ieee16, AgreesBetweenItsTwoEntryPointsOnAnyBitPattern) {
  const Rng rng(3, 7);
  for (uint64_t i = 0; i < 400000; ++i) {
    const float x = f32_from_bits(rng.bits(i));
    if (std::isnan(x)) continue;
    ASSERT_EQ(GetParam().from_f32(x), encode_value(GetParam().dtype, static_cast<double>(x)))
        << std::hex << rng.bits(i);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Ieee16,
    testing::Values(Format{"f16", DType::f16, 10, 15, 0x7c00, f16_from_f32, f32_from_f16},
                    Format{"bf16", DType::bf16, 7, 127, 0x7f80, bf16_from_f32, f32_from_bf16}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(IeeeWide, Float64CodesAreItsBits) {
  for (const double v : {0.0, -0.0, 1.5, -1e300, 5e-324, kInf}) {
    EXPECT_EQ(encode_value(DType::f64, v), test::bits_of(v));
    EXPECT_TRUE(same(decode_value(DType::f64, test::bits_of(v)), v));
  }
}

TEST(IeeeWide, Float32RoundsOnceFromFloat64) {
  const double tie = 1.0 + std::ldexp(1.0, -24);
  EXPECT_EQ(encode_value(DType::f32, tie), f32_bits(1.0f));
  EXPECT_EQ(encode_value(DType::f32, above(tie)), f32_bits(above(1.0f)));
  EXPECT_EQ(encode_value(DType::f32, 1e300), 0x7f800000u);
  EXPECT_EQ(encode_value(DType::f32, std::ldexp(1.0, -149)), 1u);
  EXPECT_EQ(encode_value(DType::f32, std::ldexp(1.0, -150)), 0u);
}

TEST(IeeeWide, Float32KeepsNanPayloadsByBits) {
  for (const uint32_t code : {0x7fc00000u, 0xffc00001u, 0x7fc12345u, 0x7fffffffu}) {
    EXPECT_EQ(encode_value(DType::f32, decode_value(DType::f32, code)), code) << std::hex << code;
  }
}

}  // namespace
}  // namespace loom::core
