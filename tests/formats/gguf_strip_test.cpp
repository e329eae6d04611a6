// White space that special tokens absorb: the keys of GGUF files, and the rule of the family
// without them.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/gguf/tokenizer/export_tokenizer.hpp"
#include "formats/gguf_testing.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

// The added tokens with the white space they take: "<|user|>" or "<|user|>>".
std::vector<std::string> strips(const GgufMetadata& metadata) {
  const auto spec = round_trip(metadata);
  EXPECT_TRUE(spec.ok()) << spec.error().str();
  std::vector<std::string> out;
  for (const text::AddedTokenSpec& token : spec->added)
    out.push_back((token.lstrip ? "<" : "") + token.content + (token.rstrip ? ">" : ""));
  return out;
}

TEST(GgufTokenizers, TakeTheWhiteSpaceThatTheirFamilyTakes) {
  using Names = std::vector<std::string>;
  const Names pieces = {"<unk>", "<s>", "</s>", "a", "<|endoftext|>", "<|user|>", "<|end|>"};
  const std::vector<int32_t> types = {2, 3, 1, 1, 3, 3, 4};
  const Names phi3 = {"<unk>", "<s>", "</s>>", "<|endoftext|>", "<|user|>>", "<|end|>>"};
  const Names plain = {"<unk>", "<s>", "<|endoftext|>", "<|user|>", "<|end|>"};
  const auto file = [&](const char* architecture, const char* name) {
    GgufMetadata metadata;
    metadata.string("general.architecture", architecture);
    if (*name != '\0') metadata.string("general.name", name);
    metadata.string("tokenizer.ggml.model", "llama");
    metadata.strings("tokenizer.ggml.tokens", pieces);
    metadata.f32s("tokenizer.ggml.scores", std::vector<float>(pieces.size(), 0));
    metadata.i32s("tokenizer.ggml.token_type", types);
    return metadata;
  };
  EXPECT_EQ(strips(file("phi3", "")), phi3);
  EXPECT_EQ(strips(file("llama", "Phi-3-mini-4k-instruct")), phi3);
  EXPECT_EQ(strips(file("llama", "PHI3")), phi3);
  EXPECT_EQ(strips(file("llama", "tiny")), plain);
  GgufMetadata ours = file("phi3", "");
  ours.i32s("loom.tokenizer.lstrip", std::vector<int32_t>{1});
  ours.i32s("loom.tokenizer.rstrip", std::vector<int32_t>{1, 6});
  EXPECT_EQ(strips(ours), (Names{"<unk>", "<<s>>", "<|endoftext|>", "<|user|>", "<|end|>>"}));
  GgufMetadata mask;
  mask.string("tokenizer.ggml.model", "gpt2");
  mask.string("tokenizer.ggml.pre", "jina-v2-de");
  mask.strings("tokenizer.ggml.tokens", Names{"a", "<mask>"});
  mask.strings("tokenizer.ggml.merges", Names{});
  mask.i32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 3});
  EXPECT_EQ(strips(mask), Names{"<<mask>"});
}

// The effect of Phi-3's <|user|> on the following line, in HF `tokenizers` and here.
TEST(GgufTokenizers, GiveNoIdsForTheWhiteSpaceThatATokenTook) {
  GgufMetadata metadata;
  metadata.string("general.architecture", "phi3");
  metadata.string("tokenizer.ggml.model", "llama");
  metadata.strings("tokenizer.ggml.tokens",
                   std::vector<std::string>{"a", "<|user|>", "\n", "\xE2\x96\x81"});
  metadata.f32s("tokenizer.ggml.scores", std::vector<float>(4, 0));
  metadata.i32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 3, 1, 1});
  metadata.boolean("tokenizer.ggml.add_space_prefix", false);
  const auto spec = round_trip(metadata);
  ASSERT_TRUE(spec.ok()) << spec.error().str();
  const auto tokenizer = Tokenizer::make(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  EXPECT_EQ(*tokenizer->encode("<|user|>\n a<|user|>a\n"), (std::vector<TokenId>{1, 0, 1, 0, 2}));
}

TEST(GgufTokenizers, KeepTheWhiteSpaceOfTheirTokensInAFile) {
  MadeSource source(tiny("LlamaForCausalLM", "llama"));
  source.tokenizer_json = dump_json(member(read_golden("family_llama2.json"), "tokenizer"));
  const size_t at = source.tokenizer_json.find("\"lstrip\":false,\"rstrip\":false");
  ASSERT_NE(at, std::string::npos);
  source.tokenizer_json.replace(at, 29, "\"lstrip\":true,\"rstrip\":true");
  source.config.vocab_size = Tokenizer::parse(source.tokenizer_json, "t")->vocab_size();
  GgufMetadata metadata;
  ASSERT_TRUE(write_gguf_tokenizer(source, metadata).ok());
  const std::vector<std::string> kept = strips(metadata);
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(),
                          [](const std::string& s) {
                            return s[1] == '<' && s.back() == '>' && s[s.size() - 2] == '>';
                          }),
            1);
}

}  // namespace
}  // namespace loom::core
