// The public interface as a program would use it: handles, errors, text in and out.
#include <gmock/gmock.h>

#include "io/files/file.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kStories = loom_test::source_path("tests/data/stories");

Engine make_engine() {
  Result<Engine> engine = Engine::create({.threads = 2});
  EXPECT_TRUE(engine.ok());
  return *engine;
}

Model load_stories(loom::DType dtype = loom::DType::q8_0) {
  Result<Model> model = Model::load(make_engine(), kStories, {.dtype = dtype});
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

TEST(Version, IsThatOfTheProject) {
  const Result<std::string> cmake = read_file(loom_test::source_path("CMakeLists.txt"));
  ASSERT_TRUE(cmake.ok());
  EXPECT_THAT(*cmake, HasSubstr("project(loom VERSION " + std::string(kVersion) + " "));
}

TEST(Engine, TellsWhatItUses) {
  const Result<Engine> engine = Engine::create({.threads = 1, .isa = "scalar"});
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ(engine->info().threads, 1);
  EXPECT_EQ(engine->info().isa, "scalar");
  EXPECT_EQ(engine->info().isas.front(), "scalar");
  EXPECT_EQ(engine->info().activations, Activations::q8);
  EXPECT_GE(engine->info().cores, 1);
}

TEST(Engine, UsesNoMoreThreadsThanCoresUnlessAsked) {
  const Result<Engine> modest = Engine::create({.threads = 1000});
  ASSERT_TRUE(modest.ok());
  EXPECT_LE(modest->info().threads, modest->info().cores);
  const Result<Engine> bold = Engine::create({.threads = 7, .exact_threads = true});
  ASSERT_TRUE(bold.ok());
  EXPECT_EQ(bold->info().threads, bold->info().threads_built_in ? 7 : 1);
}

TEST(Engine, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Engine::create({.threads = -1}).error().code, Code::invalid_argument);
  EXPECT_EQ(Engine::create({.isa = "mmx"}).error().code, Code::unsupported);
  EXPECT_THAT(Engine::create({.isa = "mmx"}).error().str(), HasSubstr("scalar"));
}

TEST(Model, TellsWhatItHolds) {
  const ModelInfo info = load_stories().info();
  EXPECT_EQ(info.architecture, "LlamaForCausalLM");
  EXPECT_EQ(info.dtype, loom::DType::q8_0);
  EXPECT_EQ(info.layers, 4);
  EXPECT_EQ(info.width, 192);
  EXPECT_EQ(info.heads, 3);
  EXPECT_EQ(info.kv_heads, 1);
  EXPECT_EQ(info.vocab, 1024);
  EXPECT_EQ(info.context, 512);
  EXPECT_EQ(info.parameters, 1771200);
  EXPECT_LT(info.bytes, 1771200 * 9 / 8 + 20000);
  EXPECT_TRUE(info.tied_head && info.has_tokenizer && info.has_chat_template);
  EXPECT_THAT(info.eos_ids, ElementsAre(0, 2));
}

TEST(Model, LoadsAsStoredUnlessTold) {
  const Result<Model> model = Model::load(make_engine(), kStories);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->info().dtype, loom::DType::bfloat16);
}

TEST(Model, LoadingReportsProgressAndCanBeStopped) {
  int64_t last = 0, all = 0;
  const auto count = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, last + 1);
    last = done;
    all = total;
    return true;
  };
  ASSERT_TRUE(Model::load(make_engine(), kStories, {.progress = count}).ok());
  EXPECT_EQ(last, all);
  const auto stop = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(Model::load(make_engine(), kStories, {.progress = stop}).error().code, Code::cancelled);
}

TEST(Model, SaysWhatIsWrongWithAFolder) {
  const auto message = [](const std::string& path) {
    const Result<Model> model = Model::load(make_engine(), path);
    EXPECT_FALSE(model.ok());
    return model.ok() ? std::string() : model.error().str();
  };
  EXPECT_THAT(message("/no/such/folder"), HasSubstr("no such file or folder"));
  EXPECT_THAT(message(kStories + "/config.json"), HasSubstr("give the folder that holds it"));
  EXPECT_THAT(message(loom_test::source_path("models")), HasSubstr("config.json is missin"));
}

TEST(Model, TurnsTextIntoTokensAndBack) {
  const Model model = load_stories();
  const auto ids = model.tokenize("Once upon a time");
  ASSERT_TRUE(ids.ok());
  EXPECT_THAT(*ids, ElementsAre(540, 541, 261, 446));
  EXPECT_EQ(*model.detokenize(*ids), "Once upon a time");
  const std::vector<TokenId> beyond = {1 << 20};
  EXPECT_FALSE(model.detokenize(beyond).ok());
}

TEST(Model, RendersAChat) {
  const Model model = load_stories();
  const std::vector<ChatTurn> turns = {{"user", "Hello"}};
  const auto text = model.render_chat(turns);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
  const auto ids = model.tokenize_chat(turns);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->front(), 1);  // <|im_start|> as one token
  EXPECT_EQ(*model.detokenize(*ids, false), *text);
}

TEST(Model, RefusesAChatOfADayThatIsNone) {
  const Model model = load_stories();
  const std::vector<ChatTurn> turns = {{"user", "Hello"}};
  ChatOptions options;
  options.date = "2024-02-30";
  EXPECT_EQ(model.render_chat(turns, options).error().code, Code::invalid_argument);
  options.date = "2024-02-29";
  EXPECT_TRUE(model.render_chat(turns, options).ok());
  options.reply = false;
  EXPECT_EQ(*model.render_chat(turns, options), "<|im_start|>user\nHello<|im_end|>\n");
}

TEST(Model, OfRandomWeightsIsTheSameForTheSameSeed) {
  const auto logits = [](uint64_t seed) {
    const Result<Model> model = Model::random(make_engine(), "tiny", loom::DType::q4_0, seed);
    EXPECT_TRUE(model.ok());
    Result<ModelSession> session = model->session();
    const std::vector<TokenId> ids = {1, 2, 3};
    EXPECT_TRUE(session->feed(ids).ok());
    return std::vector<float>(session->logits().begin(), session->logits().end());
  };
  EXPECT_EQ(logits(1), logits(1));
  EXPECT_NE(logits(1), logits(2));
}

TEST(Model, OfRandomWeightsKnowsNoText) {
  const Result<Model> model = Model::random(make_engine(), "tiny", loom::DType::float32, 1);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->tokenize("x").error().code, Code::not_found);
  const std::vector<ChatTurn> turns = {{"user", "x"}};
  EXPECT_EQ(model->render_chat(turns).error().code, Code::unsupported);
  Result<ModelSession> session = model->session();
  EXPECT_FALSE(session->generate("x").ok());
  EXPECT_THAT(Model::random(make_engine(), "huge", loom::DType::float32, 1).error().str(),
              HasSubstr("tiny"));
}

TEST(ModelSession, KeepsItsModelAndEngineAlive) {
  Result<ModelSession> session = [] {
    const Result<Model> model = Model::random(make_engine(), "tiny", loom::DType::float32, 1);
    return model->session();
  }();
  ASSERT_TRUE(session.ok());
  const std::vector<TokenId> ids = {1, 2, 3};
  EXPECT_TRUE(session->feed(ids).ok());
  EXPECT_EQ(session->logits().size(), 256u);
}

TEST(ModelSession, GivesTheLogitsOfEveryPosition) {
  const Model model = load_stories();
  Result<ModelSession> all = model.session({.context = 64, .chunk = 3});
  Result<ModelSession> one = model.session({.context = 64});
  const auto ids = model.tokenize("Tom had a red ball.");
  std::vector<int64_t> positions;
  const Status status = all->feed_all(*ids, [&](int64_t at, std::span<const float> logits) {
    positions.push_back(at);
    EXPECT_TRUE(one->feed({&(*ids)[static_cast<size_t>(at)], 1}).ok());
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), one->logits().begin()));
    return Status();
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(positions.size(), ids->size());
  EXPECT_EQ(all->position(), static_cast<int64_t>(ids->size()));
  const Status stopped = all->feed_all(*ids, [](int64_t, std::span<const float>) -> Status {
    return Error{Code::cancelled, "enough", {}, -1};
  });
  EXPECT_EQ(stopped.error().code, Code::cancelled);
}

TEST(ModelSession, RewindsAndRefusesWhatDoesNotFit) {
  const Model model = load_stories();
  Result<ModelSession> session = model.session({.context = 8});
  EXPECT_EQ(session->context(), 8);
  EXPECT_TRUE(session->logits().empty());
  const std::vector<TokenId> five(5, 300), bad = {1, -1}, far = {1024};
  ASSERT_TRUE(session->feed(five).ok());
  const std::vector<float> before(session->logits().begin(), session->logits().end());
  EXPECT_EQ(session->feed(five).error().code, Code::out_of_range);
  EXPECT_EQ(session->feed(bad).error().code, Code::out_of_range);
  EXPECT_EQ(session->feed(far).error().code, Code::out_of_range);
  EXPECT_EQ(session->position(), 5);
  session->rewind(2);
  session->rewind(4);  // not reached any more: no change
  EXPECT_EQ(session->position(), 2);
  ASSERT_TRUE(session->feed(std::span(five).first(3)).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), session->logits().begin()));
  session->rewind(-5);
  EXPECT_EQ(session->position(), 0);
  EXPECT_EQ(model.session({.context = 513}).error().code, Code::out_of_range);
  EXPECT_EQ(model.session({.context = -1}).error().code, Code::invalid_argument);
  EXPECT_EQ(model.session({.chunk = -1}).error().code, Code::invalid_argument);
}

TEST(ModelSession, TellsAStory) {
  const Model model = load_stories(loom::DType::float32);
  Result<ModelSession> session = model.session();
  std::string streamed;
  const auto story =
      session->generate("Once upon a time", {.max_tokens = 20}, [&](std::string_view text) {
        streamed += text;
        return true;
      });
  ASSERT_TRUE(story.ok());
  EXPECT_THAT(story->text, HasSubstr(", there was a brave boy named Jacob."));
  EXPECT_EQ(streamed, story->text);
  EXPECT_GT(session->cache_bytes(), 0);
  EXPECT_GT(session->activation_bytes(), 0);
}

TEST(DTypeNames, AreThoseThatLoadAccepts) {
  for (const std::string& name : dtype_names()) {
    const loom::DType dtype = loom::parse_dtype(name).value();
    const Result<Model> model = Model::random(make_engine(), "tiny", dtype, 1);
    ASSERT_TRUE(model.ok()) << name;
    EXPECT_EQ(loom::dtype_name(model->info().dtype), name);
  }
}

}  // namespace
}  // namespace loom::core
