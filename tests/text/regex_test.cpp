// The dialect of the patterns: translation, matching, and bounded work.
#include "text/splitting/regex.hpp"

#include <gtest/gtest.h>

namespace loom::core::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const Result<Regex> regex = Regex::compile(pattern, "p");
  EXPECT_TRUE(regex.ok()) << regex.error().str();
  std::vector<Span> spans;
  Budget budget = Budget::for_text(text.size());
  EXPECT_TRUE(regex->find_all(text, budget, spans).ok());
  std::vector<std::string> found;
  size_t covered = 0;
  for (const Span& span : spans) {
    EXPECT_EQ(span.begin, covered) << "spans cover the text";
    covered = span.end;
    if (span.matched) found.push_back(text.substr(span.begin, span.end - span.begin));
  }
  EXPECT_EQ(covered, text.size());
  return found;
}

TEST(RegexTest, ReadsTheDialectOfTheReferenceLibrary) {
  struct Case {
    const char* pattern;
    const char* text;
    std::vector<std::string> found;
  };
  const Case cases[] = {
      {R"(\p{N}{1,3}+)", "a12345b", {"12345"}},
      {R"(\p{N}{1,3})", "a12345b", {"123", "45"}},
      {R"(\p{N}{,2})", "a12", {"", "12"}},
      {R"(\h+)", "xyz1aF", {"1aF"}},
      {R"(\s)", "\xE1\xA0\x8E \xC2\xA0", {" ", "\xC2\xA0"}},
      {R"(\p{Han}+)", "漢、字", {"漢", "字"}},
      {"^.", "a\nb", {"a", "b"}},
      {"(?m:a.b)", "a\nb", {"a\nb"}},
      {"a.b", "a\nb", {}},
      {"x*", "axxb", {"", "xx", ""}},
      {"(?i:'s|'T)", "a'S b't", {"'S", "'t"}},
      {R"(\v)", "a\vb\nc", {"\v"}},
      {R"(\u00e9\x41\x{42})", "éAB", {"éAB"}},
      {"a{2", "a{2", {"a{2"}},
      {R"((?<=a)b(?!c))", "abcab", {"b"}},
      {R"([a[b-d]]+)", "xabcde", {"abcd"}},
      {R"([\p{L}&&[^aeiou]]+)", "hey you漢", {"h", "y", "y", "漢"}},
      {R"([^a-z&&b-y]+)", "abyz", {"a", "z"}},
      {R"([\w&&[^\d&&[3-5]]]+)", "a123456", {"a12", "6"}},
      {R"((?i:[a-f&&[^B]]+))", "abCK", {"abC"}},
  };
  for (const Case& c : cases) EXPECT_EQ(matches(c.pattern, c.text), c.found) << c.pattern;
}

TEST(RegexTest, EqualCharactersNeedLinearWork) {
  const char* const patterns[] = {
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
  };
  for (const char* pattern : patterns) {
    for (const char c : {'a', ' ', '\n', '.', '1'}) {
      EXPECT_FALSE(matches(pattern, std::string(200000, c)).empty());
    }
  }
}

TEST(RegexTest, RunawayPatternsStopWithAnError) {
  const char* const patterns[] = {"(a+)+b", "(a|a)*b", "(a|a?)+c", "(?:a{0,30}){0,30}b", "(a*)*$b"};
  const std::string text(2000, 'a');
  for (const char* pattern : patterns) {
    const Result<Regex> regex = Regex::compile(pattern, "p");
    ASSERT_TRUE(regex.ok()) << regex.error().str();
    std::vector<Span> spans;
    Budget budget = Budget::for_text(text.size());
    const Status status = regex->find_all(text, budget, spans);
    EXPECT_EQ(status.ok() ? Code::unsupported : status.error().code, Code::unsupported);
    EXPECT_LE(budget.steps, Budget::for_text(text.size()).steps);
  }
}

}  // namespace
}  // namespace loom::core::text
