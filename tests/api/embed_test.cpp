// Vectors and ranks of small checkpoints that `transformers` wrote and computed
// (tests/outside/embed_check.py --goldens), from their folders and as .entity files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "io/json/json.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace loom {
namespace {

const char* const kEncoders[] = {"bert",          "bert_scores", "roberta_scores",
                                 "distil_scores", "modern",      "modern_scores"};

std::string encoder_folder(const std::string& name) {
  return loom_test::source_path("tests/llm/golden/encoders/") + name;
}

core::JsonValue expected_of(const std::string& name) {
  const auto text = core::read_file(encoder_folder(name) + "/expected.json");
  EXPECT_TRUE(text.ok()) << text.error().str();
  return *core::parse_json(*text, "expected");
}

std::vector<std::string> texts_in(const core::JsonValue& expected) {
  std::vector<std::string> out;
  for (const auto& text : expected.find("texts")->elements()) out.push_back(text.text());
  return out;
}

Engine engine_with(int threads, const std::string& isa = {}) {
  Result<Engine> engine = Engine::create({.threads = threads, .isa = isa, .exact_threads = true});
  EXPECT_TRUE(engine.ok()) << engine.error().str();
  return *engine;
}

Model encoder(const std::string& path, const Engine& engine, const ModelOptions& options = {}) {
  const Result<Model> model = Model::load(engine, path, options);
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

double farthest(const std::vector<float>& values, const core::JsonValue& want) {
  EXPECT_EQ(values.size(), want.elements().size());
  double most = 0;
  for (size_t i = 0; i < std::min(values.size(), want.elements().size()); ++i)
    most = std::max(
        most, std::abs(static_cast<double>(values[i]) - *want.elements()[i].as_double("value")));
  return most;
}

void expect_golden(const Model& model, const std::string& name) {
  const core::JsonValue want = expected_of(name);
  const std::vector<std::string> texts = texts_in(want);
  for (const auto& [key, how] :
       {std::pair("mean", TextPooling::mean), std::pair("cls", TextPooling::cls)}) {
    EmbedOptions options;
    options.pooling = how;
    options.normalize = false;
    const auto found = model.embed(texts, options);
    ASSERT_TRUE(found.ok()) << found.error().str();
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_LT(farthest((*found)[i].values, want.find(key)->elements()[i]), 1e-5) << texts[i];
  }
  const auto& logits = want.find("logits")->elements();
  EXPECT_EQ(model.info().reranker, !logits.empty());
  if (logits.empty()) return;
  const auto ranked = model.rerank(want.find("query")->text(), texts);
  ASSERT_TRUE(ranked.ok()) << ranked.error().str();
  for (size_t i = 0; i < ranked->size(); ++i) {
    const Ranked& one = (*ranked)[i];
    EXPECT_NEAR(one.logit, *logits[static_cast<size_t>(one.index)].as_double("logit"), 1e-5);
    if (i > 0) {
      EXPECT_LE(one.score, (*ranked)[i - 1].score);
    }
  }
}

class EncoderModels : public testing::TestWithParam<const char*> {};

TEST_P(EncoderModels, GiveWhatTransformersComputes) {
  const Engine engine = engine_with(1);
  expect_golden(encoder(encoder_folder(GetParam()), engine), GetParam());
}

TEST_P(EncoderModels, AreTheSameFromAnEntityFile) {
  const Engine engine = engine_with(1);
  const core::test::TemporaryFolder folder;
  const std::string path = folder.path("encoder.entity");
  const Result<Converted> written = convert(encoder_folder(GetParam()), path);
  ASSERT_TRUE(written.ok()) << written.error().str();
  const Model from_file = encoder(path, engine);
  expect_golden(from_file, GetParam());
  const std::vector<std::string> texts = {"the cat sleeps"};
  EXPECT_EQ(from_file.embed(texts)->front().values,
            encoder(encoder_folder(GetParam()), engine).embed(texts)->front().values);
}

TEST_P(EncoderModels, HaveTheSameBitsOverThreadsInstructionSetsAndNeighbours) {
  const std::vector<std::string> texts = texts_in(expected_of(GetParam()));
  for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::q8_0)}) {
    ModelOptions options;
    options.dtype = dtype;
    const Engine one = engine_with(1, "scalar");
    const auto first = encoder(encoder_folder(GetParam()), one, options).embed(texts);
    ASSERT_TRUE(first.ok()) << first.error().str();
    for (const std::string& isa : one.info().isas) {
      const Engine engine = engine_with(3, isa);
      const Model model = encoder(encoder_folder(GetParam()), engine, options);
      const auto all = model.embed(texts);
      ASSERT_TRUE(all.ok()) << all.error().str();
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ((*all)[i].values, (*first)[i].values) << isa << ", " << texts[i];
        EXPECT_EQ(model.embed(std::span(&texts[i], 1))->front().values, (*first)[i].values);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, EncoderModels, testing::ValuesIn(kEncoders),
                         [](const auto& test) { return std::string(test.param); });

TEST(Embed, VectorsHaveLengthOneAndDimensionsCutThem) {
  const Model model = encoder(encoder_folder("bert"), engine_with(1));
  const std::vector<std::string> texts = {"the cat sleeps", "a dog runs"};
  const auto whole = model.embed(texts);
  ASSERT_TRUE(whole.ok());
  EXPECT_NEAR(cosine((*whole)[0].values, (*whole)[0].values), 1.0, 1e-6);
  EmbedOptions options;
  options.dimensions = 3;
  const auto cut = model.embed(texts, options);
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ((*cut)[0].values.size(), 3u);
  double length = 0;
  for (const float v : (*cut)[0].values) length += static_cast<double>(v) * static_cast<double>(v);
  EXPECT_NEAR(length, 1.0, 1e-6);
  options.dimensions = 1000;
  EXPECT_EQ(model.embed(texts, options).error().code, Code::out_of_range);
}

TEST(Embed, ATextThatIsTooLongIsCutOrRefused) {
  const Model model = encoder(encoder_folder("bert"), engine_with(1));
  const std::vector<std::string> texts = {"cat cat cat cat cat cat"};
  EmbedOptions options;
  options.max_tokens = 5;
  const auto cut = model.embed(texts, options);
  ASSERT_TRUE(cut.ok()) << cut.error().str();
  EXPECT_TRUE(cut->front().truncated);
  EXPECT_EQ(cut->front().tokens, 5);
  options.truncate = false;
  EXPECT_EQ(model.embed(texts, options).error().message,
            "text 0 has 8 tokens, more than 5; shorten it, or let it be truncated");
}

TEST(Embed, APoolingPerTokenGivesAVectorForEach) {
  const Model model = encoder(encoder_folder("bert"), engine_with(1));
  EmbedOptions options;
  options.pooling = TextPooling::none;
  const std::vector<std::string> texts = {"the cat"};
  const auto found = model.embed(texts, options);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->front().rows, 4);
  EXPECT_EQ(found->front().values.size(), 4u * static_cast<size_t>(model.info().width));
}

TEST(Embed, AnEncoderWritesNoTextAndAModelWithoutAHeadDoesNotRank) {
  const Model model = encoder(encoder_folder("bert"), engine_with(1));
  EXPECT_TRUE(model.info().encoder);
  EXPECT_EQ(model.session().error().message,
            "BertModel is an encoder: it makes vectors of texts and writes none; use embed");
  const std::vector<std::string> texts = {"a"};
  EXPECT_EQ(model.rerank("a", texts).error().code, Code::unsupported);
  EmbedOptions options;
  options.prompt_name = "query";
  EXPECT_EQ(model.embed(texts, options).error().message,
            "this model has no prompt 'query'; it has none");
}

TEST(Embed, ADecoderGivesTheStateOfItsLastToken) {
  const Model model = encoder(loom_test::source_path("models/stories.entity"), engine_with(1));
  const std::vector<std::string> texts = {"Once upon a time", "there was a cat"};
  const auto both = model.embed(texts);
  ASSERT_TRUE(both.ok()) << both.error().str();
  const auto alone = model.embed(std::span(&texts[1], 1));
  EXPECT_EQ((*both)[1].values, alone->front().values);
  EmbedOptions none;
  none.pooling = TextPooling::none;
  const auto rows = model.embed(std::span(&texts[1], 1), none);
  const auto width = static_cast<size_t>(model.info().width);
  ASSERT_EQ(rows->front().values.size() % width, 0u);
  const std::vector<float> last(rows->front().values.end() - static_cast<std::ptrdiff_t>(width),
                                rows->front().values.end());
  EXPECT_EQ(last, both->at(1).values);
  const std::vector<std::vector<TokenId>> ids = {*model.tokenize(texts[1])};
  EXPECT_EQ(model.embed_tokens(ids)->front().values, alone->front().values);
}

}  // namespace
}  // namespace loom
