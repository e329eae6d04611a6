// UTF-8 repair, properties and normalization forms against known values.
#include "text/normalizers/unicode.hpp"

#include <gtest/gtest.h>

#include "base/processor_time.hpp"

namespace loom::core::text {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(UnicodeTest, EachMaximalBrokenPartBecomesOneReplacementCharacter) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA9", "\xC3\xA9"},
      {"\x80", kBad},
      {"\xC3", kBad},
      {"\xC3(", kBad + "("},
      {"\xE2\x82\xE2\x82\xAC", kBad + "\xE2\x82\xAC"},
      {"\xF0\x9F\x99\x82", "\xF0\x9F\x99\x82"},
      {"\xF0\x9F\x99", kBad},
      {"\xF0\x9F(", kBad + "("},
      {"\xE0\x80\x80", kBad + kBad + kBad},
      {"\xF4\x90\x80\x80", kBad + kBad + kBad + kBad},
      {"\xFE\xFF", kBad + kBad},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(to_valid_utf8(bytes), expected);
    EXPECT_EQ(is_valid_utf8(bytes), bytes == expected);
    EXPECT_TRUE(is_valid_utf8(to_valid_utf8(bytes)));
  }
}

TEST(UnicodeTest, DrainingByteByByteGivesTheSameText) {
  const std::string bytes = "a\xC3\xA9\xFFz\xE2\x82\xF0\x9F\x99\x82\xED\xA0\x80\xF0\x9F";
  std::string held, out;
  for (const char c : bytes) {
    held += c;
    drain_utf8(held, false, out);
    EXPECT_TRUE(is_valid_utf8(out));
    EXPECT_LT(held.size(), 4U);
  }
  drain_utf8(held, true, out);
  EXPECT_EQ(out, to_valid_utf8(bytes));
}

TEST(UnicodeTest, EveryCodePointSurvivesUtf8) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string bytes = utf8(c);
    ASSERT_TRUE(is_valid_utf8(bytes)) << static_cast<uint32_t>(c);
    ASSERT_EQ(code_point_at(bytes, 0).value, c);
    ASSERT_EQ(code_point_before(bytes, bytes.size()).value, c);
    ASSERT_EQ(code_point_at(bytes, 0).length, bytes.size());
  }
}

TEST(UnicodeTest, PropertiesOfSingleCharacters) {
  EXPECT_TRUE(is_white_space(0x3000) && is_white_space(0x85) && is_white_space(' '));
  EXPECT_FALSE(is_white_space(0x180E) || is_white_space(0x200B) || is_white_space(0x1C));
  EXPECT_TRUE(is_python_space(0x1C) && !is_python_space(0x180E));
  EXPECT_TRUE(is_numeric('7') && is_numeric(0x00BD) && is_numeric(0x2160) && is_numeric(0x0663));
  EXPECT_FALSE(is_numeric('a') || is_numeric(0x4E00));
  EXPECT_TRUE(is_punctuation('$') && is_punctuation(0x3002) && is_punctuation(0x00AB));
  EXPECT_FALSE(is_punctuation(0x20AC) || is_punctuation('a') || is_punctuation(' '));
  std::string text;
  append_lower(text, 0x130);
  append_lower(text, 0xC9);
  EXPECT_EQ(text, "i\xCC\x87\xC3\xA9");
}

TEST(UnicodeTest, NormalFormsOfKnownStrings) {
  struct Case {
    const char* text;
    const char *nfc, *nfd, *nfkc, *nfkd;
  };
  const Case cases[] = {
      {"\u00e9", "\u00e9", "e\u0301", "\u00e9", "e\u0301"},
      {"e\u0301", "\u00e9", "e\u0301", "\u00e9", "e\u0301"},
      {"q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307"},
      {"\ufb01", "\ufb01", "\ufb01", "fi", "fi"},
      {"\uac01", "\uac01", "\u1100\u1161\u11a8", "\uac01", "\u1100\u1161\u11a8"},
      {"\u212b", "\u00c5", "A\u030a", "\u00c5", "A\u030a"},
      {"\u0958", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c"},
      {"a\u0315\u0300\u05ae\u0062", "\u00e0\u05ae\u0315b", "a\u05ae\u0300\u0315b",
       "\u00e0\u05ae\u0315b", "a\u05ae\u0300\u0315b"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(normalize(c.text, NormalForm::nfc), c.nfc) << c.text;
    EXPECT_EQ(normalize(c.text, NormalForm::nfd), c.nfd) << c.text;
    EXPECT_EQ(normalize(c.text, NormalForm::nfkc), c.nfkc) << c.text;
    EXPECT_EQ(normalize(c.text, NormalForm::nfkd), c.nfkd) << c.text;
  }
}

TEST(UnicodeTest, ALongRunOfMarksIsOrderedInBoundedTime) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  const double seconds = test::processor_seconds([&] {
    for (const NormalForm form : {NormalForm::nfc, NormalForm::nfd}) {
      EXPECT_EQ(count_code_points(normalize(text, form)),
                form == NormalForm::nfc ? 200000U : 200001U);
    }
  });
  EXPECT_LT(seconds, 10);
}

}  // namespace
}  // namespace loom::core::text
