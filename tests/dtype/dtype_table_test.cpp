// The table of number types: frozen ids, names and aliases that parse, unknown names that are
// refused with the exact text, and derived columns. A changed id or bias here is a changed file
// format.
#include "dtype/dtype.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace loom::core {
namespace {

TEST(DTypeTable, HoldsTheTwentyOneFrozenIdsInOrder) {
  const char* names[] = {"float64", "float32", "float16", "bfloat16", "fp8e4m3", "fp8e5m2",
                         "int64",   "int32",   "int16",   "int8",     "uint64",  "uint32",
                         "uint16",  "uint8",   "int4",    "uint4",    "fp4",     "int2",
                         "uint2",   "ternary", "binary"};
  const int bits[] = {64, 32, 16, 16, 8, 8, 64, 32, 16, 8, 64, 32, 16, 8, 4, 4, 4, 2, 2, 2, 1};
  for (size_t id = 0; id < std::size(names); ++id) {
    EXPECT_EQ(dtype_table()[id].name, names[id]);
    EXPECT_EQ(dtype_table()[id].bits, bits[id]) << names[id];
  }
}

TEST(DTypeTable, HoldsTheExtrasAfterThem) {
  EXPECT_EQ(kReleasedDTypes, 37);
  EXPECT_GE(dtype_table().size(), size_t{kReleasedDTypes});
  EXPECT_EQ(static_cast<int>(DType::nf4), 21);
  EXPECT_EQ(static_cast<int>(DType::nvfp4), 26);
  EXPECT_EQ(static_cast<int>(DType::q2_k), 27);
  EXPECT_EQ(static_cast<int>(DType::u4g128), 36);
}

TEST(DTypeTable, IsIndexedById) {
  for (const DTypeInfo& info : dtype_table()) EXPECT_EQ(&dtype_info(info.dtype), &info);
}

TEST(DTypeTable, BiasMakesTheSmallestLevelCodeZero) {
  const struct {
    DType dtype;
    int bias;
  } rows[] = {{DType::i8, 128},  {DType::q8_0, 128},  {DType::i4, 8},   {DType::q4_0, 8},
              {DType::i2, 2},    {DType::ternary, 1}, {DType::u8, 0},   {DType::u4, 0},
              {DType::u2, 0},    {DType::binary, 0},  {DType::f4, 0},   {DType::i16, 0},
              {DType::e3m0, 0},  {DType::nf4, 0},     {DType::f32, 0},  {DType::q3_k, 4},
              {DType::q6_k, 32}, {DType::q5_0, 16},   {DType::q4_k, 0}, {DType::q4_1, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(dtype_info(row.dtype).code_bias, row.bias) << dtype_name(row.dtype);
  }
}

TEST(DTypeTable, UnitIsTheValueOfOneLevel) {
  for (const DTypeInfo& info : dtype_table()) {
    const float unit = info.levels == Levels::e2m1   ? 0.5f
                       : info.levels == Levels::e3m0 ? 0.25f
                                                     : 1.0f;
    EXPECT_EQ(info.level_unit, unit) << info.name;
  }
}

TEST(DTypeTable, IntegerPathIsEveryTypeOfAtMostEightBitsExceptFp8AndNf4) {
  for (const DTypeInfo& info : dtype_table()) {
    const bool fp8 = info.dtype == DType::f8e4m3 || info.dtype == DType::f8e5m2;
    EXPECT_EQ(info.integer_path(), info.bits <= 8 && !fp8 && info.dtype != DType::nf4) << info.name;
  }
}

TEST(DTypeTable, OnlyUnsignedTypesHaveAZeroPoint) {
  for (const DTypeInfo& info : dtype_table()) {
    EXPECT_EQ(info.zero != ZeroRule::none, info.kind == NumberKind::uint) << info.name;
  }
}

TEST(DTypeTable, CodesOfThreeFiveAndSixBitsHaveTwoPlanesOfWidthsThatDivideEight) {
  for (const DTypeInfo& info : dtype_table()) {
    const int high = info.bits - info.low_bits;
    EXPECT_EQ(high > 0, info.bits == 3 || info.bits == 5 || info.bits == 6) << info.name;
    EXPECT_TRUE(info.bits > 8 || 8 % info.low_bits == 0) << info.name;
    EXPECT_TRUE(high == 0 || 8 % high == 0) << info.name;
  }
}

TEST(DTypeTable, SmallIntegerScalesComeWithSuperBlocks) {
  const struct {
    DType dtype;
    int block, super;
    bool shifted;
  } rows[] = {
      {DType::q2_k, 16, 256, true},   {DType::q3_k, 16, 256, false}, {DType::q4_k, 32, 256, true},
      {DType::q5_k, 32, 256, true},   {DType::q6_k, 16, 256, false}, {DType::q4_1, 32, 0, true},
      {DType::q5_0, 32, 0, false},    {DType::q5_1, 32, 0, true},    {DType::u4g64, 64, 0, true},
      {DType::u4g128, 128, 0, false}, {DType::q4_0, 32, 0, false},   {DType::u4, 0, 0, false}};
  for (const auto& row : rows) {
    const DTypeInfo& info = dtype_info(row.dtype);
    EXPECT_EQ(info.block, row.block) << info.name;
    EXPECT_EQ(info.super_block, row.super) << info.name;
    EXPECT_EQ(info.shifted(), row.shifted) << info.name;
  }
}

TEST(ParseDType, FindsEveryNameInAnyCase) {
  for (const DTypeInfo& info : dtype_table()) {
    std::string upper(info.name);
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    for (const std::string& word : {std::string(info.name), upper}) {
      const auto parsed = parse_dtype(word);
      ASSERT_TRUE(parsed.ok()) << word;
      EXPECT_EQ(*parsed, info.dtype) << word;
    }
  }
}

TEST(ParseDType, FindsAliasesAndSafetensorsNames) {
  const struct {
    const char* word;
    DType dtype;
  } rows[] = {
      {"FP64", DType::f64},    {"F64", DType::f64},        {"double", DType::f64},
      {"FP32", DType::f32},    {"F32", DType::f32},        {"float", DType::f32},
      {"FP16", DType::f16},    {"half", DType::f16},       {"BF16", DType::bf16},
      {"FP8", DType::f8e4m3},  {"E4M3", DType::f8e4m3},    {"F8_E4M3", DType::f8e4m3},
      {"E5M2", DType::f8e5m2}, {"F8_E5M2", DType::f8e5m2}, {"I64", DType::i64},
      {"I32", DType::i32},     {"I16", DType::i16},        {"I8", DType::i8},
      {"U64", DType::u64},     {"U32", DType::u32},        {"U16", DType::u16},
      {"U8", DType::u8},       {"I4", DType::i4},          {"U4", DType::u4},
      {"F4", DType::f4},       {"e2m1", DType::f4},        {"i2", DType::i2},
      {"u2", DType::u2},       {"b158", DType::ternary},   {"t2", DType::ternary},
      {"b1", DType::binary},   {"Q4_0", DType::q4_0},      {"Q8_0", DType::q8_0},
      {"MXFP4", DType::mxfp4}, {"NVFP4", DType::nvfp4},    {"NF4", DType::nf4},
  };
  for (const auto& row : rows) {
    const auto parsed = parse_dtype(row.word);
    ASSERT_TRUE(parsed.ok()) << row.word;
    EXPECT_EQ(*parsed, row.dtype) << row.word;
  }
}

TEST(ParseDType, NoWordMeansTwoTypes) {
  std::set<std::string> seen;
  for (const DTypeInfo& info : dtype_table()) {
    std::string list = std::string(info.name) + "," + std::string(info.aliases);
    for (size_t at = 0; at < list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      if (comma > at) {
        EXPECT_TRUE(seen.insert(list.substr(at, comma - at)).second) << list;
      }
      at = comma + 1;
    }
  }
}

constexpr const char* kNames =
    "float64, float32, float16, bfloat16, fp8e4m3, fp8e5m2, int64, int32, int16, int8, uint64, "
    "uint32, uint16, uint8, int4, uint4, fp4, int2, uint2, ternary, binary, nf4, e3m0, q4_0, q8_0, "
    "mxfp4, nvfp4, q2_k, q3_k, q4_k, q5_k, q6_k, q4_1, q5_0, q5_1, uint4_g64, uint4_g128";

// The released names, and those of unreleased types.
std::string all_names() {
  std::string all = kNames;
  for (const DTypeInfo& info : dtype_table()) {
    if (!released(info.dtype)) all += ", " + std::string(info.name);
  }
  return all;
}

TEST(ParseDType, AnswersAnUnknownNameWithTheNamesThereAre) {
  const auto parsed = parse_dtype("int7");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::invalid_argument);
  EXPECT_EQ(parsed.error().message,
            "unknown dtype 'int7'; choose from " + all_names() + "; did you mean 'int8'?");
}

TEST(ParseDType, RefusesWhatIsAlmostAName) {
  for (const char* word : {"", ",", "f32,", "f32,fp32", " f32", "f3", "f322", "int8\n"}) {
    EXPECT_FALSE(parse_dtype(word).ok()) << word;
  }
}

TEST(ParseDType, PrintsHostileNamesSafely) {
  const auto parsed = parse_dtype(std::string("\x1b[2J") + std::string(500, 'x'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, testing::StartsWith("unknown dtype '\\x1b[2Jxxx"));
  EXPECT_LT(parsed.error().message.size(), all_names().size() + 200);
}

}  // namespace
}  // namespace loom::core
