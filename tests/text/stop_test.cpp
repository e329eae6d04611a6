// Encoding polls whether the caller has cancelled, and ends then. Random texts, tokenizers of every
// kind.
#include <functional>
#include <random>

#include "base/text.hpp"
#include "golden.hpp"

namespace loom::core {
namespace {

struct Named {
  std::string name;
  Tokenizer tokenizer;
};

std::vector<Named> family_tokenizers() {
  std::vector<Named> out;
  for (const char* const family : kFamilies) {
    const JsonValue golden = read_golden(cat("family_", family, ".json"));
    out.push_back({family, load_tokenizer(member(golden, "tokenizer"))});
  }
  return out;
}

std::vector<Named> all_tokenizers() {
  std::vector<Named> out = family_tokenizers();
  const JsonValue encoders = read_golden("encoders.json");
  for (const JsonValue& one : encoders.elements())
    out.push_back({member(one, "name").text(), load_tokenizer(member(one, "tokenizer"))});
  return out;
}

using Draw = std::function<size_t(size_t below)>;

// At least that many bytes of one kind: an endless word, words, spaces, marks, special tokens.
std::string random_text(size_t bytes, const Draw& draw) {
  const std::vector<std::vector<std::string>> kinds = {
      {"7", "3", "0"},           {"a", "b", "th", "e"},   {"once ", "upon ", "a ", "time, "},
      {" ", "  ", "\n"},         {"<s>", "</s>", "x "},   {"\u00e9", "e\u0301", "\u1e69"},
      {"\u6f22", "\u5b57", "a"}, {"!", "?", " .", "\xff"}};
  const std::vector<std::string>& parts = kinds[draw(kinds.size())];
  std::string out;
  while (out.size() < bytes) out += parts[draw(parts.size())];
  return out;
}

class Stopping : public testing::Test {
 protected:
  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  std::mt19937_64 random_{37};
};

TEST_F(Stopping, EndsEncodingAtTheFirstYesAndChangesNothingOtherwise) {
  for (const Named& one : all_tokenizers()) {
    for (int round = 0; round < 4; ++round) {
      const std::string text = random_text(60'000, [this](size_t n) { return draw(n); });
      SCOPED_TRACE(cat(one.name, ": ", printable(text, 40)));
      const auto expected = one.tokenizer.encode(text);
      size_t asked = 0, yes = SIZE_MAX;
      Tokenizer::EncodeOptions options;
      options.should_stop = [&] { return ++asked >= yes; };
      const auto whole = one.tokenizer.encode(text, options);
      ASSERT_EQ(whole.ok(), expected.ok());
      if (!whole.ok()) continue;
      EXPECT_EQ(*whole, *expected);
      ASSERT_GT(asked, 0u);
      yes = 1 + draw(asked);
      asked = 0;
      const auto cut = one.tokenizer.encode(text, options);
      ASSERT_FALSE(cut.ok());
      EXPECT_EQ(cut.error().code, Code::cancelled) << cut.error().str();
      EXPECT_EQ(asked, yes) << "nothing is asked, or done, after a yes";
      asked = 0;
      EXPECT_EQ(one.tokenizer.encode_texts(text, nullptr, 0, options).error().code,
                Code::cancelled);
    }
  }
}

// A word that is the whole text costs more than its length; the function is polled throughout.
TEST_F(Stopping, IsAskedInsideOfALongWord) {
  for (const Named& one : family_tokenizers()) {
    size_t asked = 0;
    Tokenizer::EncodeOptions options;
    options.should_stop = [&] { return ++asked == 0; };
    const std::string word(200'000, 'a');
    const auto ids = one.tokenizer.encode(word, options);
    if (!ids.ok()) continue;
    EXPECT_GE(asked, word.size() / 4096) << one.name;
  }
}

}  // namespace
}  // namespace loom::core
