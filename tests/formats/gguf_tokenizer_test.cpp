// Tokenizers of GGUF files: the ids of the reference library after a round trip, and refusals.
#include "formats/gguf/tokenizer/tokenizer.hpp"

#include <functional>

#include "formats/gguf/tokenizer/export_tokenizer.hpp"
#include "formats/gguf_testing.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

class GgufTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufTokenizer, GivesTheIdsOfTheReferenceLibraryAfterARoundTrip) {
  const JsonValue golden = read_golden(std::string("family_") + GetParam() + ".json");
  const JsonValue texts = read_golden("texts.json");
  MadeSource source(tiny("LlamaForCausalLM", "llama"));
  source.tokenizer_json = dump_json(member(golden, "tokenizer"));
  const auto original = Tokenizer::parse(source.tokenizer_json, "t");
  ASSERT_TRUE(original.ok());
  source.config.vocab_size = original->vocab_size();
  source.config.bos_token_id = original->token_id("<s>");
  for (const char* bos : {"<bos>", "<|begin_of_text|>"})
    if (original->token_id(bos) >= 0) source.config.bos_token_id = original->token_id(bos);
  GgufMetadata metadata;
  const Status status = write_gguf_tokenizer(source, metadata);
  ASSERT_TRUE(status.ok()) << status.error().str();
  const auto spec = round_trip(metadata);
  ASSERT_TRUE(spec.ok()) << spec.error().str();
  const auto tokenizer = Tokenizer::make(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  for (size_t i = 0; i < texts.elements().size(); ++i) {
    const std::string& text = texts.elements()[i].text();
    EXPECT_EQ(*tokenizer->encode(text), ids_of(member(golden, "encoded").elements()[i])) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GgufTokenizer,
                         ::testing::Values("gpt2", "llama3", "qwen2", "gpt4o", "smollm", "llama2",
                                           "gemma"),
                         [](const auto& test) { return std::string(test.param); });

// The ids of a SentencePiece vocabulary with these pieces and scores.
std::vector<TokenId> piece_ids(const std::vector<std::string>& pieces,
                               const std::vector<float>& scores, std::string_view text) {
  GgufMetadata metadata;
  metadata.string("tokenizer.ggml.model", "llama");
  metadata.strings("tokenizer.ggml.tokens", pieces);
  metadata.f32s("tokenizer.ggml.scores", scores);
  metadata.boolean("tokenizer.ggml.add_space_prefix", false);
  const auto spec = round_trip(metadata);
  EXPECT_TRUE(spec.ok()) << spec.error().str();
  const auto tokenizer = Tokenizer::make(*spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  return *tokenizer->encode(text);
}

TEST(GgufTokenizers, MergesPiecesByScoreAndTheLeftmostOfEquals) {
  // aaa may come of (aa, a) and of (a, aa), which one list of ranks cannot order by place.
  const std::vector<std::string> pieces = {"a", "b", "aa", "aaa", "ab"};
  EXPECT_EQ(piece_ids(pieces, {0, 0, -1, -2, -3}, "aaaa"), (std::vector<TokenId>{2, 2}));
  EXPECT_EQ(piece_ids(pieces, {0, 0, -1, -2, -3}, "aaaab"), (std::vector<TokenId>{2, 2, 1}));
  EXPECT_EQ(piece_ids(pieces, {0, 0, -1, -2, -1}, "aaab"), (std::vector<TokenId>{2, 4}));
  EXPECT_EQ(piece_ids(pieces, {0, 0, -2, -3, -1}, "aaab"), (std::vector<TokenId>{2, 4}));
  EXPECT_EQ(piece_ids(pieces, {0, 0, -5, -5, -5}, "aaaaaab"), (std::vector<TokenId>{3, 3, 1}));
}

TEST(GgufTokenizers, RefusesWhatItCannotRead) {
  const auto with = [](const std::function<void(GgufMetadata&)>& change) {
    GgufMetadata metadata;
    change(metadata);
    const auto spec = round_trip(metadata);
    return spec.ok() ? std::string("accepted") : spec.error().str();
  };
  const std::vector<std::string> two = {"a", "b"};
  const float scores[] = {0, 1e30f * 1e30f};
  const int32_t types[] = {1, 7};
  const auto pieces = [&](GgufMetadata& m) {
    m.string("tokenizer.ggml.model", "llama");
    m.strings("tokenizer.ggml.tokens", two);
  };
  EXPECT_EQ(with([&](GgufMetadata& m) { m.string("tokenizer.ggml.model", "rwkv"); }),
            "f: at byte 56: gguf key 'tokenizer.ggml.model' is 'rwkv', which is not supported; "
            "gpt2 and llama are");
  EXPECT_EQ(with([&](GgufMetadata& m) { m.string("tokenizer.ggml.model", "llama"); }),
            "f: gguf key 'tokenizer.ggml.tokens' is missing");
  EXPECT_EQ(with([&](GgufMetadata& m) { pieces(m); }),
            "f: gguf key 'tokenizer.ggml.scores' is missing");
  EXPECT_EQ(with([&](GgufMetadata& m) {
              pieces(m);
              m.f32s("tokenizer.ggml.scores", std::span(scores).first(1));
            }),
            "f: at byte 177: gguf key 'tokenizer.ggml.scores' has 1 elements, there are 2 tokens");
  EXPECT_EQ(with([&](GgufMetadata& m) {
              pieces(m);
              m.f32s("tokenizer.ggml.scores", scores);
            }),
            "f: at byte 177: gguf key 'tokenizer.ggml.scores' gives token 1 a score that is not a "
            "number");
  EXPECT_EQ(
      with([&](GgufMetadata& m) {
        pieces(m);
        m.i32s("tokenizer.ggml.token_type", types);
      }),
      "f: at byte 181: gguf key 'tokenizer.ggml.token_type' gives token 1 the type 7; 1 to 6");
  EXPECT_EQ(with([&](GgufMetadata& m) {
              m.string("tokenizer.ggml.model", "gpt2");
              m.strings("tokenizer.ggml.tokens", two);
              m.string("tokenizer.ggml.pre", "mystery");
            }),
            "f: at byte 161: gguf key 'tokenizer.ggml.pre' is 'mystery', a pre-tokenizer that is "
            "not known here");
  EXPECT_EQ(with([&](GgufMetadata& m) {
              m.string("tokenizer.ggml.model", "gpt2");
              m.strings("tokenizer.ggml.tokens", two);
              m.strings("tokenizer.ggml.merges", {"a b", "ab"});
            }),
            "f: at byte 176: gguf key 'tokenizer.ggml.merges' has no two tokens in merge 1");
}

}  // namespace
}  // namespace loom::core
