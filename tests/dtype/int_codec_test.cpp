// Integer, ternary and binary element codecs: every code of the narrow types and a comb through the
// wide ones, ties, clamps, NaN, and the 53-bit rule of 64-bit types.
// Codes are stored codes: level + bias, or two's complement from int16 up.
#include "samples.hpp"

namespace loom::core {
namespace {

using test::above;
using test::below;
using test::kInf;
using test::kNan;

struct Range {
  DType dtype;
  double lo, hi;
  bool biased;  // code = level - lo; otherwise two's complement or plain
};

const Range kRanges[] = {{DType::i8, -128, 127, true},
                         {DType::i4, -8, 7, true},
                         {DType::i2, -2, 1, true},
                         {DType::ternary, -1, 1, true},
                         {DType::u8, 0, 255, true},
                         {DType::u4, 0, 15, true},
                         {DType::u2, 0, 3, true},
                         {DType::u16, 0, 65535, true},
                         {DType::i16, -32768, 32767, false},
                         {DType::i32, -2147483648.0, 2147483647.0, false},
                         {DType::u32, 0, 4294967295.0, true},
                         {DType::i64, -9007199254740991.0, 9007199254740991.0, false},
                         {DType::u64, 0, 9007199254740991.0, true}};

void PrintTo(const Range& r, std::ostream* os) {
  *os << dtype_name(r.dtype);
}

class Integers : public testing::TestWithParam<Range> {
 protected:
  uint64_t code_of(double level) const {
    const Range& r = GetParam();
    if (r.biased) return static_cast<uint64_t>(level - r.lo);
    const int bits = dtype_info(r.dtype).bits;
    return static_cast<uint64_t>(static_cast<int64_t>(level)) & (~uint64_t{0} >> (64 - bits));
  }
};

TEST_P(Integers, GiveEveryLevelItsCodeAndBack) {
  const Range& r = GetParam();
  const double step = r.hi - r.lo > 70000 ? std::floor((r.hi - r.lo) / 50000.5) : 1;
  for (double level = r.lo; level <= r.hi; level += step) {
    ASSERT_EQ(encode_value(r.dtype, level), code_of(level)) << level;
    ASSERT_EQ(decode_value(r.dtype, code_of(level)), level);
  }
  EXPECT_EQ(decode_value(r.dtype, code_of(r.hi)), r.hi);
}

TEST_P(Integers, RoundTiesToEvenAndNeighboursToTheirSide) {
  const Range& r = GetParam();
  const double lo = std::max(r.lo, -300.0), hi = std::min(r.hi, 300.0);
  for (double level = lo; level < hi; ++level) {
    const double tie = level + 0.5;
    const bool even = std::fmod(level, 2.0) == 0;
    ASSERT_EQ(encode_value(r.dtype, tie), code_of(even ? level : level + 1)) << tie;
    ASSERT_EQ(encode_value(r.dtype, above(tie)), code_of(level + 1)) << tie;
    ASSERT_EQ(encode_value(r.dtype, below(tie)), code_of(level)) << tie;
  }
}

TEST_P(Integers, ClampWhatIsOutOfRange) {
  const Range& r = GetParam();
  for (const double v : {r.hi, r.hi + 0.49, r.hi * 2 + 3, 1e18, 1e19, 1e300, kInf}) {
    EXPECT_EQ(encode_value(r.dtype, v), code_of(r.hi)) << v;
  }
  for (const double v : {r.lo, r.lo - 0.49, r.lo * 2 - 3, -1e18, -1e19, -1e300, -kInf}) {
    EXPECT_EQ(encode_value(r.dtype, v), code_of(r.lo)) << v;
  }
}

TEST_P(Integers, ReadNanAsZero) {
  EXPECT_EQ(decode_value(GetParam().dtype, encode_value(GetParam().dtype, kNan)), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Types, Integers, testing::ValuesIn(kRanges),
                         [](const auto& row) { return std::string(dtype_name(row.param.dtype)); });

TEST(GgufElements, RoundQ4HalfUpAndQ8HalfAwayFromZero) {
  const struct {
    DType dtype;
    double value, level;
  } rows[] = {{DType::q4_0, 0.5, 1},     {DType::q4_0, -0.5, 0},    {DType::q4_0, -1.5, -1},
              {DType::q4_0, 7.6, 7},     {DType::q4_0, 99, 7},      {DType::q4_0, -99, -8},
              {DType::q4_0, kInf, 7},    {DType::q4_0, -kInf, -8},  {DType::q4_0, kNan, 0},
              {DType::q8_0, 0.5, 1},     {DType::q8_0, -0.5, -1},   {DType::q8_0, 2.5, 3},
              {DType::q8_0, -2.5, -3},   {DType::q8_0, 126.5, 127}, {DType::q8_0, 999, 127},
              {DType::q8_0, -999, -128}, {DType::q8_0, kNan, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(decode_value(row.dtype, encode_value(row.dtype, row.value)), row.level)
        << dtype_name(row.dtype) << " " << row.value;
  }
  const auto below_half = static_cast<double>(below(0.5f));
  EXPECT_EQ(decode_value(DType::q8_0, encode_value(DType::q8_0, below_half)), 0);
}

TEST(GgufElements, GiveEveryLevelItsCodeAndBack) {
  for (uint64_t code = 0; code < 256; ++code) {
    EXPECT_EQ(decode_value(DType::q8_0, code), static_cast<double>(code) - 128);
    EXPECT_EQ(encode_value(DType::q8_0, decode_value(DType::q8_0, code)), code);
  }
  for (uint64_t code = 0; code < 16; ++code) {
    EXPECT_EQ(decode_value(DType::q4_0, code), static_cast<double>(code) - 8);
    EXPECT_EQ(encode_value(DType::q4_0, decode_value(DType::q4_0, code)), code);
  }
}

TEST(Binary, HasTheCodesPlusOneAndMinusOne) {
  EXPECT_EQ(decode_value(DType::binary, 1), 1.0);
  EXPECT_EQ(decode_value(DType::binary, 0), -1.0);
  for (const double v : {0.0, -0.0, 1e-300, 7.0, kInf, kNan}) {
    EXPECT_EQ(encode_value(DType::binary, v), 1u) << v;
  }
  for (const double v : {-1e-300, -7.0, -kInf}) EXPECT_EQ(encode_value(DType::binary, v), 0u) << v;
}

TEST(DecodeValue, IgnoresBitsAboveTheWidthOfTheType) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.bits == 64) continue;
    const uint64_t code = encode_value(info.dtype, 1.0);
    EXPECT_EQ(decode_value(info.dtype, code | ~uint64_t{0} << info.bits),
              decode_value(info.dtype, code))
        << info.name;
  }
}

}  // namespace
}  // namespace loom::core
