// StreamDecoder: for any ids, the joined pieces equal decode(), and no piece ends within a
// character.
#include <gtest/gtest.h>

#include <map>

#include "base/numbers/rng.hpp"
#include "golden.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {
namespace {

class StreamFamily : public testing::TestWithParam<const char*> {};

// Ids that exist, in a random order, with some runs of neighbours (byte tokens are neighbours).
std::vector<TokenId> random_ids(const Tokenizer& tokenizer, uint64_t stream) {
  const Rng rng(20240607, stream);
  const auto size = static_cast<uint32_t>(tokenizer.vocab_size());
  std::vector<TokenId> ids;
  for (uint64_t i = 0; i < 5 + stream % 60; ++i) {
    const uint32_t bits = rng.bits(i);
    // Half of them from the front of the vocabulary, where special tokens and byte tokens are.
    const uint32_t range = (bits & 1) != 0 ? size : std::min<uint32_t>(size, 259);
    const auto id = static_cast<TokenId>((bits >> 1) % range);
    if (tokenizer.decode(std::vector<TokenId>{id}).ok()) ids.push_back(id);
  }
  return ids;
}

TEST_P(StreamFamily, PiecesPutTogetherAreTheDecodedText) {
  const JsonValue golden = read_golden(std::string("family_") + GetParam() + ".json");
  const Tokenizer tokenizer = load_tokenizer(member(golden, "tokenizer"));
  for (uint64_t stream = 0; stream < 400; ++stream) {
    const std::vector<TokenId> ids = random_ids(tokenizer, stream);
    for (const bool skip : {true, false}) {
      StreamDecoder decoder(tokenizer, skip);
      std::string together;
      for (const TokenId id : ids) {
        const Result<std::string> piece = decoder.push(id);
        ASSERT_TRUE(piece.ok()) << piece.error().str();
        EXPECT_TRUE(text::is_valid_utf8(*piece)) << "stream " << stream;
        together += *piece;
      }
      const std::string rest = decoder.finish();
      EXPECT_TRUE(text::is_valid_utf8(rest)) << "stream " << stream;
      EXPECT_EQ(together + rest, *tokenizer.decode(ids, skip)) << "stream " << stream;
    }
  }
}

// Bytes of the common prefix, in whole characters.
size_t common_front(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  while (at > 0 && at < a.size() && (static_cast<unsigned char>(a[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::string continued(const Tokenizer& tokenizer, std::span<const TokenId> before,
                      std::span<const TokenId> ids, bool skip) {
  StreamDecoder decoder(tokenizer, skip);
  EXPECT_TRUE(decoder.continue_after(before).ok());
  std::string together;
  for (const TokenId id : ids) together += *decoder.push(id);
  return together + decoder.finish();
}

TEST_P(StreamFamily, AContinuationIsWhatTheWholeTextHasBeyondThePrompt) {
  const JsonValue golden = read_golden(std::string("family_") + GetParam() + ".json");
  const Tokenizer tokenizer = load_tokenizer(member(golden, "tokenizer"));
  for (uint64_t stream = 0; stream < 200; ++stream) {
    const std::vector<TokenId> ids = random_ids(tokenizer, stream);
    const std::span<const TokenId> all = ids;
    const auto before = all.first(stream % (all.size() + 1));
    for (const bool skip : {true, false}) {
      const std::string prompt = *tokenizer.decode(before, skip);
      const std::string whole = *tokenizer.decode(all, skip);
      EXPECT_EQ(continued(tokenizer, before, all.subspan(before.size()), skip),
                whole.substr(common_front(whole, prompt)))
          << "stream " << stream;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, StreamFamily, testing::ValuesIn(kFamilies),
                         [](const auto& test) { return std::string(test.param); });

TEST(StreamDecoderTest, ContinuesAPromptLikeTheReferenceLibrary) {
  const JsonValue golden = read_golden("continuations.json");
  ASSERT_GT(golden.elements().size(), 500U);
  std::map<std::string, Tokenizer> tokenizers;
  for (const JsonValue& row : golden.elements()) {
    const std::string family = member(row, "family").text();
    if (!tokenizers.contains(family)) {
      const JsonValue file = read_golden("family_" + family + ".json");
      tokenizers.emplace(family, load_tokenizer(member(file, "tokenizer")));
    }
    const auto prompt = ids_of(member(row, "prompt")), ids = ids_of(member(row, "ids"));
    EXPECT_EQ(continued(tokenizers.at(family), prompt, ids, true), member(row, "text").text())
        << family;
  }
}

TEST(StreamDecoderTest, IdsWithoutATokenBeforeAContinuationCountAsNothing) {
  const Tokenizer tokenizer =
      load_tokenizer(member(read_golden("family_llama2.json"), "tokenizer"));
  const auto a = static_cast<TokenId>(tokenizer.token_id("a"));
  const TokenId space = tokenizer.token_id("▁"), none = 1 << 20;
  EXPECT_FALSE(tokenizer.has_token(none));
  EXPECT_EQ(continued(tokenizer, std::vector{none, a}, std::vector{space, a}, true), " a");
  EXPECT_EQ(continued(tokenizer, std::vector{none}, std::vector{space, a}, true), "a");
}

TEST(StreamDecoderTest, ACharacterAppearsWhenItsLastByteArrives) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_gpt2.json"), "tokenizer"));
  StreamDecoder decoder(tokenizer);
  // U+1F642 is F0 9F 99 82; the byte alphabet writes these as four characters.
  const char* const bytes[] = {"ð", "Ł", "Ļ", "Ĥ"};
  for (int i = 0; i < 4; ++i) {
    const TokenId id = tokenizer.token_id(bytes[i]);
    ASSERT_GE(id, 0) << bytes[i];
    EXPECT_EQ(*decoder.push(id), i == 3 ? "🙂" : "") << i;
  }
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, ABrokenEndBecomesAReplacementCharacter) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_gpt2.json"), "tokenizer"));
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(*decoder.push(tokenizer.token_id("ð")), "");
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
}

TEST(StreamDecoderTest, BytesOfAFallbackRunAreHeldUntilItEnds) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_gemma.json"), "tokenizer"));
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<0xE2>")), "");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<0x82>")), "");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<0xAC>")), "");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("a")), "€a");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<0xE2>")), "");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<0x82>")), "");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("b")),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
}

TEST(StreamDecoderTest, TheSpaceBeforeTheFirstWordIsDroppedOnce) {
  const Tokenizer tokenizer =
      load_tokenizer(member(read_golden("family_llama2.json"), "tokenizer"));
  StreamDecoder decoder(tokenizer);
  const TokenId space = tokenizer.token_id("▁");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("<s>")), "");
  EXPECT_EQ(*decoder.push(space), "");
  EXPECT_EQ(*decoder.push(space), " ");
  EXPECT_EQ(*decoder.push(tokenizer.token_id("a")), "a");
}

TEST(StreamDecoderTest, AnUnknownIdIsAnErrorAndTheStreamGoesOn) {
  const Tokenizer tokenizer = load_tokenizer(member(read_golden("family_gpt2.json"), "tokenizer"));
  StreamDecoder decoder(tokenizer);
  EXPECT_FALSE(decoder.push(100000).ok());
  EXPECT_EQ(*decoder.push(tokenizer.token_id("a")), "a");
}

}  // namespace
}  // namespace loom::core
