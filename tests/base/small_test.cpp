// The small parts of base: results and errors, checked arithmetic, text, bit casts.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

TEST(Error, PrintsOneLineWithThePartsItHas) {
  struct Case {
    Error error;
    const char* line;
  };
  const Case cases[] = {
      {invalid("rows must be positive"), "rows must be positive"},
      {invalid("rows must be positive", "config.json"), "config.json: rows must be positive"},
      {bad_file("ends early", "m.entity", 17), "m.entity: at byte 17: ends early"},
      {bad_file("ends early", "", 0), "at byte 0: ends early"},
  };
  for (const Case& c : cases) EXPECT_EQ(c.error.str(), c.line);
}

TEST(Error, ShortMakersSetTheirCode) {
  EXPECT_EQ(invalid("x").code, Code::invalid_argument);
  EXPECT_EQ(bad_file("x").code, Code::bad_file);
  EXPECT_EQ(unsupported("x").code, Code::unsupported);
  EXPECT_EQ(make_error(Code::cancelled, "x").code, Code::cancelled);
}

TEST(Code, EveryCodeHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int32_t code = 0; code <= 9; ++code) {
    const std::string_view name = code_name(static_cast<Code>(code));
    EXPECT_NE(name, "unknown code");
    for (std::string_view other : names) EXPECT_NE(name, other);
    names.push_back(name);
  }
  EXPECT_EQ(code_name(static_cast<Code>(1234)), "unknown code");
}

Result<int> half(int x) {
  if (x % 2 != 0) return invalid(cat(x, " is odd"));
  return x / 2;
}
Result<int> quarter(int x) {
  LOOM_ASSIGN(const int h, half(x));
  LOOM_ASSIGN(const int q, half(h));
  return q;
}
Status even(int x) {
  LOOM_TRY(half(x));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(half(6).value(), 3);
  EXPECT_TRUE(half(6).ok());
  EXPECT_FALSE(half(5));
  EXPECT_EQ(half(5).error().message, "5 is odd");
}

TEST(Result, MacrosPassTheFirstErrorOn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(even(2).ok());
  EXPECT_EQ(even(7).error().message, "7 is odd");
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(4));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 4);
}

TEST(Checked, ProductsAndSumsSayWhenTheyDoNotFit) {
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  uint64_t out = 0;
  EXPECT_TRUE(checked_mul(kTop, 1, out));
  EXPECT_EQ(out, kTop);
  EXPECT_TRUE(checked_mul(kTop, 0, out));
  EXPECT_EQ(out, 0u);
  EXPECT_FALSE(checked_mul(kTop, 2, out));
  EXPECT_FALSE(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32, out));
  EXPECT_TRUE(checked_add(kTop - 1, 1, out));
  EXPECT_EQ(out, kTop);
  EXPECT_FALSE(checked_add(kTop, 1, out));
}

TEST(Checked, DivisionsRoundUp) {
  EXPECT_EQ(ceil_div(0, 32), 0);
  EXPECT_EQ(ceil_div(1, 32), 1);
  EXPECT_EQ(ceil_div(32, 32), 1);
  EXPECT_EQ(ceil_div(33, 32), 2);
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(65, 64), 128);
}

TEST(Text, CatJoinsTextAndNumbers) {
  EXPECT_EQ(cat(0.0, ' ', 16777216.0, ' ', 0.1f, ' ', -1.5), "0 16777216 0.1 -1.5");
  EXPECT_EQ(cat("row ", 3, " of ", int64_t{4}, ',', std::string("x"), std::string_view("y")),
            "row 3 of 4,xy");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(to_lower_ascii("Q4_0 \xC3\x84"), "q4_0 \xC3\x84");
}

TEST(Text, PrintableShowsControlBytesAndCutsLongText) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable(std::string_view("a\n\0\x7f", 4)), "a\\x0a\\x00\\x7f");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable(std::string(61, 'x')), std::string(60, 'x') + "...");
}

TEST(Bits, CastsKeepEveryBit) {
  EXPECT_EQ(f32_bits(1.0f), 0x3f800000u);
  EXPECT_EQ(f32_bits(-0.0f), 0x80000000u);
  EXPECT_EQ(f32_from_bits(0x40490fdb), 3.14159274f);
  const unsigned char bytes[] = {0xff, 0x78, 0x56, 0x34, 0x12};
  EXPECT_EQ(load_le<uint32_t>(bytes + 1), 0x12345678u);
}

}  // namespace
}  // namespace loom::core
