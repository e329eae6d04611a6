// Stop strings in a stream: none of their text is output, no other text is lost, for any pieces.
#include "llm/sampling/stop_matcher.hpp"

#include <gtest/gtest.h>

namespace loom::core {
namespace {

struct Case {
  const char* name;
  std::vector<std::string> stops;
  std::string text, expected;
  bool found;
};

const Case kCases[] = {
    {"no stop string", {}, "abc", "abc", false},
    {"not in the text", {"xyz"}, "abc", "abc", false},
    {"in the middle", {"b"}, "abc", "a", true},
    {"at the start", {"abc"}, "abcd", "", true},
    {"at the end", {"cd"}, "abcd", "ab", true},
    {"only its beginning at the end", {"cde"}, "abcd", "abcd", false},
    {"a false start, then the real one", {"aab"}, "aaab!", "a", true},
    {"repeated false starts", {"ababc"}, "abababab", "abababab", false},
    {"the earliest of several", {"d", "bc"}, "abcd", "a", true},
    {"one is the beginning of another", {"abcd", "b"}, "abcx", "a", true},
    {"several bytes per character", {"\n\xE2\x82\xAC"}, "1\n\xE2\x82\xAC", "1", true},
    {"shares a lead byte only", {"\xE2\x82\xAC"}, "\xE2\x82\xAD", "\xE2\x82\xAD", false},
};

TEST(StopMatcher, LetsThroughWhatComesBeforeWhateverThePieces) {
  for (const Case& c : kCases) {
    for (size_t piece = 1; piece <= c.text.size(); ++piece) {
      SCOPED_TRACE(std::string(c.name) + ", pieces of " + std::to_string(piece));
      Result<StopMatcher> matcher = StopMatcher::create(c.stops);
      ASSERT_TRUE(matcher.ok());
      std::string out;
      for (size_t at = 0; at < c.text.size(); at += piece)
        out += matcher->push(c.text.substr(at, piece));
      out += matcher->finish();
      EXPECT_EQ(out, c.expected);
      EXPECT_EQ(matcher->found(), c.found);
    }
  }
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  Result<StopMatcher> matcher = StopMatcher::create({"\n\n"});
  EXPECT_EQ(matcher->push("one\n"), "one");
  EXPECT_EQ(matcher->push("two"), "\ntwo");
  EXPECT_EQ(matcher->push("\n"), "");
  EXPECT_EQ(matcher->push("\nthree"), "");
  EXPECT_TRUE(matcher->found());
  EXPECT_EQ(matcher->push("four"), "");
  EXPECT_EQ(matcher->finish(), "");
}

TEST(StopMatcher, RefusesEmptyAndBrokenStrings) {
  EXPECT_FALSE(StopMatcher::create({""}).ok());
  EXPECT_FALSE(StopMatcher::create({"ok", "\xE2\x82"}).ok());
}

}  // namespace
}  // namespace loom::core
