// Which tokens may come: beside trying every token alone, on random grammars, vocabularies and
// walks; text with triggers and without banned strings; grammars that would explode.
#include "grammar/matcher.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "base/processor_time.hpp"
#include "grammar/grammars.hpp"

namespace loom::core::grammar {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Vocabulary> vocabulary(std::vector<std::string> tokens) {
  return std::make_shared<const Vocabulary>(std::move(tokens));
}

class RandomGrammars {
 public:
  explicit RandomGrammars(uint64_t seed) : engine_(seed) {}
  size_t below(size_t n) { return engine_() % n; }

  std::string grammar() {
    std::string out = "root ::= " + body(3) + "\n";
    for (const char* name : {"one", "two"})
      out += std::string(name) + " ::= \"<\" " + body(2) + "\n";
    return out;
  }
  std::string token() {
    std::string out;
    for (size_t i = below(5) + 1; i > 0; --i) out += letters()[below(letters().size())];
    return out;
  }

 private:
  static std::string_view letters() { return "abc<>\xC3\xA9"; }
  std::string times() {
    switch (below(7)) {
      case 0: return "?";
      case 1: return "*";
      case 2: return "+";
      case 3: {
        const size_t least = below(4);
        return "{" + std::to_string(least) + "," + std::to_string(least + below(40)) + "}";
      }
      case 4: return "{" + std::to_string(below(30)) + ",}";
      default: return "";
    }
  }
  std::string item(int depth) {
    switch (below(depth > 0 ? 6 : 4)) {
      case 0:
        return "\"" + std::string(1, "abc"[below(3)]) + std::string(1, "abc"[below(3)]) + "\"";
      case 1: return "[a-c]";
      case 2: return "[^<>b]";
      case 3: return below(2) == 0 ? "one" : "two";
      default: return "(\"" + std::string(1, "abc"[below(3)]) + "\" " + body(depth - 1) + ")";
    }
  }
  std::string body(int depth) {
    std::string out;
    for (size_t choices = below(3) + 1; choices > 0; --choices) {
      for (size_t parts = below(3) + 1; parts > 0; --parts) out += item(depth) + times() + " ";
      if (choices > 1) out += "| ";
    }
    return out + "| \"a\"";
  }
  std::mt19937_64 engine_;
};

TEST(Matcher, MasksAreWhatEachTokenAloneSays) {
  const char* setting = std::getenv("LOOM_GRAMMAR_CASES");
  const uint64_t cases = setting != nullptr ? std::strtoull(setting, nullptr, 10) : 80;
  uint64_t used = 0, tokens_seen = 0;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    RandomGrammars random(seed);
    const std::string text = random.grammar();
    const auto program = test::gbnf(text);
    if (!program.ok()) continue;  // a repetition of what may be empty
    ++used;
    std::vector<std::string> tokens = {"", "a", "b", "c", "<", ">", "\xC3", "\xA9"};
    for (int i = 0; i < 60; ++i) tokens.push_back(random.token());
    Matcher matcher(*program, vocabulary(tokens));
    Automaton alone(*program, 1);
    ConfigSet exact = alone.start();
    for (int step = 0; step < 40; ++step) {
      const auto bits = matcher.allowed();
      if (!bits.ok()) {
        EXPECT_THAT(bits.error().message, HasSubstr("too ambiguous")) << text;
        break;
      }
      std::vector<int32_t> may;
      for (size_t id = 0; id < tokens.size(); ++id) {
        ConfigSet at = exact;
        for (const char c : tokens[id]) at = alone.step(at, static_cast<uint8_t>(c));
        if (alone.overflowed()) break;
        const bool fits = !tokens[id].empty() && (!at.configs.empty() || at.ends);
        ASSERT_EQ(((*bits)[id / 64] >> (id % 64) & 1) != 0, fits)
            << text << "\ntoken " << tokens[id];
        if (fits) may.push_back(static_cast<int32_t>(id));
      }
      if (alone.overflowed()) break;
      ASSERT_EQ(matcher.may_end(), exact.ends);
      if (may.empty()) break;
      const int32_t id = may[random.below(may.size())];
      ++tokens_seen;
      ASSERT_TRUE(matcher.accept(id));
      for (const char c : tokens[static_cast<size_t>(id)])
        exact = alone.step(exact, static_cast<uint8_t>(c));
    }
  }
  EXPECT_GT(used * 2, cases);
  EXPECT_GT(tokens_seen, cases * 5);
}

TEST(Matcher, ManyPlacesInALongStringShareTheirMask) {
  const auto program = test::gbnf("root ::= \"'\" [a-z]{0,2000} \"'\"");
  std::vector<std::string> tokens = {"'"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.push_back(std::string(8, c));
  Matcher matcher(*program, vocabulary(tokens));
  ASSERT_TRUE(matcher.accept(0));
  for (int i = 0; i < 250; ++i) {
    ASSERT_TRUE(matcher.allowed().ok());
    ASSERT_TRUE(matcher.accept(1 + i % 26)) << i;
  }
  EXPECT_LT(matcher.masks(), 8u);
  const auto bits = matcher.allowed();
  EXPECT_EQ((*bits)[0], 1u) << "2000 characters are there: the string ends";
  ASSERT_TRUE(matcher.accept(0));
  EXPECT_TRUE(matcher.must_end());
}

TEST(Matcher, WhatDoesNotFollowChangesNothing) {
  const auto program = test::gbnf("root ::= \"ab\"");
  Matcher matcher(*program, vocabulary({"a", "b", "ac"}));
  EXPECT_FALSE(matcher.accept(2));
  EXPECT_TRUE(matcher.accept(0));
  EXPECT_FALSE(matcher.accept(0));
  const ConfigSet after_a = matcher.position();
  EXPECT_TRUE(matcher.accept(1));
  EXPECT_TRUE(matcher.must_end());
  matcher.restore(after_a);
  EXPECT_TRUE(matcher.accept_bytes("b"));
}

bool holds(Builder& builder, ExprId root, std::string_view text) {
  const auto program = Program::compile(builder, root);
  EXPECT_TRUE(program.ok());
  return test::fits(*program, text);
}

TEST(FreeText, BannedStringsNeverAppear) {
  for (const char* text : {"", "she", "xhexhix", "ushe", "hi his"}) {
    Builder b;
    const bool has = std::string_view(text).find("hers") != std::string_view::npos ||
                     std::string_view(text).find("his") != std::string_view::npos ||
                     std::string_view(text).find("she") != std::string_view::npos;
    EXPECT_EQ(holds(b, b.text_without({"hers", "his", "she"}), text), !has) << text;
  }
}

TEST(FreeText, ATriggerBeginsWhatFollowsIt) {
  struct Case {
    const char* text;
    bool once, again;
  };
  const Case cases[] = {
      {"", true, true},
      {"hello", true, true},
      {"hello <tool>[1]", true, true},
      {"<tool>", false, false},
      {"<tool>x", false, false},
      {"<<tool>[2]", true, true},
      {"<tool>[1] and more", false, true},
      {"<tool>[1]<tool>[2]", false, true},
      {"<to <ol>", true, true},
      {"f(1)", true, true},
      {"f(x)", false, false},
  };
  for (const Case& c : cases) {
    for (const bool again : {false, true}) {
      Builder b;
      const ExprId list = b.sequence({b.literal("["), b.chars('0', '9'), b.literal("]")});
      const ExprId call = b.sequence({b.chars('0', '9'), b.literal(")")});
      const ExprId root = b.free_text({{"<tool>", list}, {"f(", call}}, again);
      EXPECT_EQ(holds(b, root, c.text), again ? c.again : c.once) << c.text << again;
    }
  }
}

// Grammars that would explode where alternatives or counts were written out.
TEST(Matcher, HostileGrammarsStayBounded) {
  std::vector<std::string> grammars = {
      "root ::= (\"a\" | \"a\" | \"a\" \"a\"){0,100000}",
      "root ::= ((\"a\"{0,50}){1,50}){1,50} \"b\"",
      "root ::= a a a a a a a a a a a a\na ::= \"a\"* \"a\"* \"a\"*",
      "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"",
      "root ::= ([a-z]* [a-z]* [a-z]*)* \"1\"",
      "root ::= s\ns ::= \"a\" s s | \"a\"",
  };
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 40; ++i)
    doubling += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" +
                std::to_string(i + 1) + "\n";
  grammars.push_back(doubling + "r40 ::= \"a\"\n");
  std::vector<std::string> tokens = {"a", "aa", "aaaaaaaa", "b", "c", "1", "ab"};
  for (const std::string& text : grammars) {
    SCOPED_TRACE(text.substr(0, 60));
    const auto program = test::gbnf(text);
    if (!program.ok()) continue;
    const double seconds = core::test::processor_seconds([&] {
      Matcher matcher(*program, vocabulary(tokens));
      for (int i = 0; i < 200; ++i) {
        if (!matcher.allowed().ok() || !matcher.accept(2)) break;
      }
    });
    EXPECT_LT(seconds, 20);
  }
}

// Alternatives of letters, each without some of them: nearly every token leads to another set of
// alternatives, and all of them are looked at for each.
std::string many_alternatives(size_t count) {
  std::mt19937 random(3);
  std::string out = "root ::= ";
  for (size_t i = 0; i < count; ++i) {
    std::string letters;
    for (char c = 'a'; c <= 'z'; ++c) {
      if (random() % 4 != 0) letters += c;
    }
    out += (i == 0 ? "[" : " | [") + letters + "]* \"0\"";
  }
  return out;
}

TEST(Matcher, WorkForTheTokensOfOnePlaceIsBounded) {
  std::vector<std::string> tokens = {"0"};
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) {
      for (char c = 'a'; c <= 'z'; ++c) tokens.push_back({a, b, c});
    }
  }
  const auto words = vocabulary(tokens);
  const auto some = test::gbnf(many_alternatives(50));
  ASSERT_TRUE(some.ok()) << some.error().str();
  Matcher fits(*some, words);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(fits.allowed().ok());
    ASSERT_TRUE(fits.accept(1));
  }
  const auto large = test::gbnf(many_alternatives(2000));
  ASSERT_TRUE(large.ok()) << large.error().str();
  Matcher matcher(*large, words);
  const auto bits = matcher.allowed();
  ASSERT_FALSE(bits.ok());
  EXPECT_THAT(bits.error().message, HasSubstr("too ambiguous"));
}

}  // namespace
}  // namespace loom::core::grammar
