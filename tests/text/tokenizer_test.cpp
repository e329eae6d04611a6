// The interface of Tokenizer beyond the goldens: lookups, options, broken input, unknown
// characters, bounds.
#include "text/tokenizer.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/processor_time.hpp"
#include "golden.hpp"

namespace loom::core {
namespace {

// A small tokenizer with the given members and model.
std::string with_model(const std::string& members, const std::string& model) {
  return "{" + members + (members.empty() ? "" : ",") + "\"model\":" + model + "}";
}

constexpr const char* kTiny =
    R"({"type":"BPE","unk_token":"?","vocab":{"?":0,"a":1,"b":2,"ab":3,"abab":4,"<0x41>":5},)"
    R"("merges":["a b","ab ab"]})";

Tokenizer parse(const std::string& json) {
  Result<Tokenizer> tokenizer = Tokenizer::parse(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  return std::move(*tokenizer);
}

std::vector<TokenId> ids(std::initializer_list<TokenId> list) {
  return list;
}

TEST(TokenizerTest, MergesByRankFromTheLeft) {
  const Tokenizer tokenizer = parse(with_model("", kTiny));
  EXPECT_EQ(*tokenizer.encode("ababab"), ids({4, 3}));
  EXPECT_EQ(*tokenizer.encode("aab"), ids({1, 3}));
  EXPECT_EQ(*tokenizer.encode(""), ids({}));
}

TEST(TokenizerTest, FirstGenerationFilesNeedNoModelType) {
  const Tokenizer tokenizer = parse(R"({"model":{"unk_token":"","vocab":{"a":0,"b":1,"ab":2},)"
                                    R"("merges":["#version: 0.2","a b"]}})");
  EXPECT_EQ(*tokenizer.encode("abb"), ids({2, 1}));
}

TEST(TokenizerTest, UnknownCharactersFollowTheModelsFlags) {
  struct Case {
    const char* flags;
    const char* text;
    std::vector<TokenId> expected;
  };
  const Case cases[] = {
      {R"("unk_token":"?")", "axyb", {1, 0, 0, 2}},
      {R"("unk_token":"?","fuse_unk":true)", "axyb", {1, 0, 2}},
      {R"("unk_token":null)", "axyb", {3}},
      {R"("unk_token":"?","byte_fallback":true)", "aAb", {1, 5, 2}},
      {R"("unk_token":"?","byte_fallback":true)", "aCb", {1, 0, 2}},
      // The reference library puts a pending unknown after the following bytes.
      {R"("unk_token":"?","byte_fallback":true)", "xAb", {5, 0, 2}},
  };
  for (const Case& c : cases) {
    const std::string model = std::string(R"({"type":"BPE",)") + c.flags +
                              R"(,"vocab":{"?":0,"a":1,"b":2,"ab":3,"<0x41>":5},"merges":["a b"]})";
    EXPECT_EQ(*parse(with_model("", model)).encode(c.text), c.expected) << c.flags << " " << c.text;
  }
}

TEST(TokenizerTest, AnUnknownTokenThatIsNoTokenIsAnErrorWhenNeeded) {
  const Tokenizer tokenizer =
      parse(with_model("", R"({"type":"BPE","unk_token":"nope","vocab":{"a":0},"merges":[]})"));
  EXPECT_EQ(*tokenizer.encode("aa"), ids({0, 0}));
  EXPECT_EQ(
      tokenizer.encode("ax").error().str(),
      "tokenizer.json: model: the text needs unk_token 'nope', which is not in the vocabulary");
}

TEST(TokenizerTest, TheLastOfTwoEqualMergesCounts) {
  const Tokenizer tokenizer = parse(with_model(
      "",
      R"({"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4},"merges":["a b","b c","a b"]})"));
  EXPECT_EQ(*tokenizer.encode("abc"), ids({0, 4}));
}

TEST(TokenizerTest, IgnoreMergesTakesAWholeWordFromTheVocabulary) {
  const std::string members = R"("pre_tokenizer":{"type":"WhitespaceSplit"})";
  const std::string model =
      R"({"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"aab":2},"merges":[]})";
  EXPECT_EQ(*parse(with_model(members, model)).encode("aab ab"), ids({2, 0, 1}));
}

TEST(TokenizerTest, LooksUpTokensOfTheVocabularyAndAddedOnes) {
  const Tokenizer tokenizer = parse(
      with_model(R"("added_tokens":[{"id":9,"content":"<s>","single_word":false,"lstrip":false,)"
                 R"("rstrip":false,"normalized":false,"special":true},)"
                 R"({"id":7,"content":"xy","single_word":false,"lstrip":false,)"
                 R"("rstrip":false,"normalized":false,"special":false}])",
                 kTiny));
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.token_id("<s>"), 9);
  EXPECT_EQ(tokenizer.token_id("ab"), 3);
  EXPECT_EQ(tokenizer.token_id("nothing"), -1);
  EXPECT_TRUE(tokenizer.is_special(9));
  EXPECT_FALSE(tokenizer.is_special(7));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.token_bytes(3), "ab");
  EXPECT_EQ(tokenizer.token_bytes(9), "");
  EXPECT_EQ(tokenizer.token_bytes(1000), "");
  EXPECT_EQ(*tokenizer.encode("<s>abxy<s>"), ids({9, 3, 7, 9}));
}

TEST(TokenizerTest, AnIdOutsideTheVocabularyIsAnError) {
  const Tokenizer tokenizer = parse(with_model("", kTiny));
  for (const TokenId id : {TokenId{-1}, TokenId{6}, TokenId{1 << 24}, INT32_MAX, INT32_MIN}) {
    const std::vector<TokenId> list = {1, id};
    const Result<std::string> text = tokenizer.decode(list);
    ASSERT_FALSE(text.ok()) << id;
    EXPECT_EQ(text.error().code, Code::out_of_range);
    EXPECT_EQ(text.error().str(), "no token has id " + std::to_string(id));
  }
}

TEST(TokenizerTest, TokenBytesAreTheRawBytesOfAToken) {
  struct Case {
    const char* family;
    const char* token;
    std::string bytes;
  };
  const Case cases[] = {
      {"gpt2", "Ġ", " "},    {"gpt2", "Ã", "\xC3"},        {"gpt2", "<|endoftext|>", ""},
      {"llama2", "▁", " "},  {"llama2", "<0xE2>", "\xE2"}, {"llama2", "<s>", ""},
      {"mistral", "▁", " "}, {"mistral", "<0x0A>", "\n"},  {"clip", "a</w>", "a "},
  };
  for (const Case& c : cases) {
    const JsonValue golden = read_golden(std::string("family_") + c.family + ".json");
    const Tokenizer tokenizer = load_tokenizer(member(golden, "tokenizer"));
    ASSERT_GE(tokenizer.token_id(c.token), 0) << c.family << " " << c.token;
    EXPECT_EQ(tokenizer.token_bytes(tokenizer.token_id(c.token)), c.bytes)
        << c.family << " " << c.token;
  }
}

TEST(TokenizerTest, BrokenUtf8IsReadAsReplacementCharacters) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_gpt2.json"), "tokenizer"));
  const std::string bad = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"a\xFFz", "a" + bad + "z"},       {"\xE2\x82", bad},
      {"\xE2\x82z", bad + "z"},          {"\xC0\x80", bad + bad},
      {"\xED\xA0\x80", bad + bad + bad}, {"\xF0\x9F\x99", bad},
      {"\xF5\x80", bad + bad},
  };
  for (const auto& [raw, repaired] : cases)
    EXPECT_EQ(*tokenizer.encode(raw), *tokenizer.encode(repaired));
}

class EqualCharacters : public testing::TestWithParam<const char*> {};

TEST_P(EqualCharacters, AMillionOfThemTakesBoundedTime) {
  const JsonValue golden = read_golden(std::string("family_") + GetParam() + ".json");
  const Tokenizer tokenizer = load_tokenizer(member(golden, "tokenizer"));
  for (const char c : {'a', ' '}) {
    const std::string text(1 << 20, c);
    const double seconds = test::processor_seconds([&] {
      const Result<std::vector<TokenId>> encoded = tokenizer.encode(text);
      ASSERT_TRUE(encoded.ok()) << encoded.error().str();
      EXPECT_TRUE(tokenizer.decode(*encoded).ok());
    });
    // Far above the real time (a second or two), far below any quadratic one.
    EXPECT_LT(seconds, 120) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EqualCharacters,
                         testing::Values("gpt2", "llama3", "deepseek", "llama2", "clip"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TokenizerTest, ThreadsShareOneTokenizer) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_qwen2.json"), "tokenizer"));
  const JsonValue texts = read_golden("texts.json");
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& result : results) {
    threads.emplace_back([&] {
      for (const JsonValue& text : texts.elements()) {
        const std::vector<TokenId> ids = *tokenizer.encode(text.text());
        result.insert(result.end(), ids.begin(), ids.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TokenId>& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_FALSE(results[0].empty());
}

TEST(TokenizerTest, ByteLevelFamiliesRoundTripEveryText) {
  for (const char* family : {"gpt2", "llama3", "gpt4o", "smollm", "deepseek"}) {
    const Tokenizer tokenizer =
        load_tokenizer(member(read_golden(std::string("family_") + family + ".json"), "tokenizer"));
    std::string text;
    for (char32_t c = 1; c < 0x30000; c += c < 0x3000 ? 1 : 37) {
      if (c >= 0xD800 && c < 0xE000) continue;
      if (c < 0x80) text += static_cast<char>(c);
      if (c >= 0x80 && c < 0x800)
        text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
      if (c >= 0x800 && c < 0x10000) {
        text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
                 static_cast<char>(0x80 | (c & 63))};
      }
    }
    const Tokenizer::EncodeOptions plain{false, false};
    EXPECT_EQ(*tokenizer.decode(*tokenizer.encode(text, plain), false), text) << family;
  }
}

TEST(TokenizerTest, ReplacementsThatGrowWithoutEndAreRefused) {
  std::string steps;
  for (int i = 0; i < 30; ++i) {
    steps += std::string(i > 0 ? "," : "") +
             R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaa"})";
  }
  const Tokenizer tokenizer =
      parse(with_model(R"("normalizer":{"type":"Sequence","normalizers":[)" + steps + "]}", kTiny));
  const Result<std::vector<TokenId>> encoded = tokenizer.encode("aaa");
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().message, "normalizing makes the text too long");
}

TEST(TokenizerTest, APatternThatBacktracksWithoutEndIsRefused) {
  const std::string split = R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a|a?)+c"},)"
                            R"("behavior":"Isolated","invert":false})";
  const Tokenizer tokenizer = parse(with_model(split, kTiny));
  const Result<std::vector<TokenId>> encoded = tokenizer.encode(std::string(3000, 'a'));
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().str(),
            "tokenizer.json: pre_tokenizer.pattern.Regex: pattern '(a|a?)+c' needs too many steps "
            "on this text");
}

}  // namespace
}  // namespace loom::core
