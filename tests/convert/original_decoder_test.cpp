// A language model in a file of the original project, converted to one that runs here: as a user
// would, through files, with a tokenizer from elsewhere.
#include "e2e/temp_folder.hpp"
#include "formats/loom1_entity_testing.hpp"
#include "loom/convert.hpp"
#include "loom/language_model.hpp"

namespace loom::core::test {
namespace {

constexpr std::string_view kTokenizer = R"({"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":4,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,
"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":null,"post_processor":null,
"decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":null,
"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,
"vocab":{"a":0,"b":1,"c":2,"d":3,"</s>":4},"merges":[]}})";

// As in files made from published models: with biases that are all zero.
std::vector<Blob> published_blobs() {
  std::vector<Blob> blobs = transformer_blobs(true);
  std::vector<float> attention = noise(kAttention, 21),
                     mlp = noise(3 * kD * kInner + 2 * kInner + kD, 23);
  std::fill(attention.begin() + 2 * kD * kD + 2 * 2 * kD, attention.end(), 0.0f);
  std::fill(mlp.begin() + 3 * kD * kInner, mlp.end(), 0.0f);
  blobs[1].bytes = f32_bytes(attention);
  blobs[3].bytes = f32_bytes(mlp);
  return blobs;
}

std::string published() {
  return entity(network_json({block_json(0)}, 4), published_blobs(), transformer_json(true));
}

class OriginalDecoder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("old.entity", published());
    write("tokenizer.json", std::string(kTokenizer));
    write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  }
  void write(const std::string& name, const std::string& text) { folder_.write(name, text); }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  TempFolder folder_;
};

TEST_F(OriginalDecoder, GivesTheLogitsOfItsNetwork) {
  loom::ConvertOptions options;
  options.tokenizer = folder_.path();
  options.context = 16;
  const auto made = loom::convert(path("old.entity"), path("new.entity"), options);
  ASSERT_TRUE(made.ok()) << made.error().str();
  const Engine engine = *Engine::create({.threads = 1});
  const auto model = Model::load(engine, path("new.entity"));
  ASSERT_TRUE(model.ok()) << model.error().str();
  EXPECT_EQ(model->info().context, 16);
  EXPECT_EQ(model->info().eos_ids, std::vector<TokenId>{4});
  EXPECT_EQ(*model->tokenize("dba"), (std::vector<TokenId>{3, 1, 0}));
  auto talk = model->session();
  ASSERT_TRUE(talk.ok());
  ASSERT_TRUE(talk->feed(std::vector<TokenId>{3, 1, 0}).ok());

  const auto ran = run(read_entity(published()), std::vector<int32_t>{3, 1, 0});
  ASSERT_EQ(ran.values.size(), 3 * kVocab);
  const std::span<const float> logits = talk->logits();
  ASSERT_EQ(logits.size(), kVocab);
  for (size_t i = 0; i < kVocab; ++i) EXPECT_NEAR(logits[i], ran.values[2 * kVocab + i], 2e-5f);
}

TEST_F(OriginalDecoder, WithBiasesThatNoClassHasIsRefused) {
  write("old.entity",
        entity(network_json({block_json(0)}, 4), transformer_blobs(true), transformer_json(true)));
  loom::ConvertOptions options;
  options.tokenizer = folder_.path();
  const auto made = loom::convert(path("old.entity"), path("new.entity"), options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, loom::Code::unsupported);
}

TEST_F(OriginalDecoder, SaysWhatIsMissingOrTooMuch) {
  loom::ConvertOptions options;
  options.tokenizer = path("nowhere.json");
  EXPECT_FALSE(loom::convert(path("old.entity"), path("x.entity"), options).ok());
  options.tokenizer = path("tokenizer.json");
  ASSERT_TRUE(loom::convert(path("old.entity"), path("new.entity"), options).ok());
  const auto twice = loom::convert(path("new.entity"), path("x.entity"), options);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("leave the other out"), std::string::npos);
  options.context = 0;
  EXPECT_FALSE(loom::convert(path("old.entity"), path("x.entity"), options).ok());
}

}  // namespace
}  // namespace loom::core::test
