// Embeddings and reranking over HTTP: every dialect returns those of Model::embed() and
// Model::rerank(), for decoders and encoders; an encoder generates no text.
#include <gmock/gmock.h>

#include <cstring>

#include "client.hpp"
#include "io/bytes/base64.hpp"
#include "serve/server.hpp"
#include "stories.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

Model golden_encoder(const std::string& name) {
  const Result<Engine> engine = Engine::create({.threads = 1});
  EXPECT_TRUE(engine.ok());
  const Result<Model> model =
      Model::load(*engine, loom_test::source_path("tests/llm/golden/encoders/") + name);
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

std::unique_ptr<LlmServer> served(const Model& model) {
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "model";
  options.service.version = "test";
  options.service.scheduler.session.context = 32;
  Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model, options);
  EXPECT_TRUE(server.ok()) << server.error().str();
  return std::move(*server);
}

Answer post_to(const LlmServer& server, std::string_view path, std::string_view body) {
  return ask(server.port(), "POST", path, body);
}

std::vector<float> floats_of(const JsonValue& list) {
  std::vector<float> out;
  for (const JsonValue& value : list.elements())
    out.push_back(static_cast<float>(*value.as_double("value")));
  return out;
}

const JsonValue& at(const JsonValue& value, const char* key) {
  static const JsonValue none{};
  const JsonValue* found = value.find(key);
  EXPECT_NE(found, nullptr) << key;
  return found != nullptr ? *found : none;
}

void expect_all_dialects(const Model& model) {
  const std::unique_ptr<LlmServer> server = served(model);
  const std::vector<std::string> texts = {"the cat sleeps", "a dog"};
  const auto want = model.embed(texts);
  ASSERT_TRUE(want.ok()) << want.error().str();
  const std::string input = R"({"input":["the cat sleeps","a dog"])";
  const JsonValue openai = post_to(*server, "/v1/embeddings", input + "}").json();
  const JsonValue ollama = post_to(*server, "/api/embed", input + "}").json();
  const JsonValue native = post_to(*server, "/embeddings", input + "}").json();
  const JsonValue packed =
      post_to(*server, "/v1/embeddings", input + R"(,"encoding_format":"base64"})").json();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float>& values = (*want)[i].values;
    EXPECT_EQ(floats_of(at(at(openai, "data").elements()[i], "embedding")), values);
    EXPECT_EQ(floats_of(at(ollama, "embeddings").elements()[i]), values);
    EXPECT_EQ(floats_of(at(native.elements()[i], "embedding").elements()[0]), values);
    const auto bytes = decode_base64(at(at(packed, "data").elements()[i], "embedding").text());
    ASSERT_TRUE(bytes.ok());
    ASSERT_EQ(bytes->size(), values.size() * 4);
    EXPECT_EQ(std::memcmp(bytes->data(), values.data(), bytes->size()), 0);
  }
  const int64_t tokens = (*want)[0].tokens + (*want)[1].tokens;
  EXPECT_EQ(*at(at(openai, "usage"), "prompt_tokens").as_int("tokens"), tokens);
  const JsonValue one = post_to(*server, "/api/embeddings", R"({"prompt":"a dog"})").json();
  EXPECT_EQ(floats_of(at(one, "embedding")), (*want)[1].values);
  EmbedOptions cut;
  cut.dimensions = 2;
  const JsonValue small = post_to(*server, "/v1/embeddings", input + R"(,"dimensions":2})").json();
  EXPECT_EQ(floats_of(at(at(small, "data").elements()[1], "embedding")),
            model.embed(texts, cut)->at(1).values);
}

TEST(ServedVectors, AreThoseOfTheModelInEveryDialect) {
  expect_all_dialects(golden_encoder("bert"));
  expect_all_dialects(stories());
}

TEST(ServedVectors, TokensAreTakenAsTheyAre) {
  const Model model = golden_encoder("bert");
  const std::unique_ptr<LlmServer> server = served(model);
  const JsonValue json = post_to(*server, "/v1/embeddings", R"({"input":[2,6,3]})").json();
  const std::vector<std::vector<TokenId>> ids = {{2, 6, 3}};
  EXPECT_EQ(floats_of(at(at(json, "data").elements()[0], "embedding")),
            model.embed_tokens(ids)->front().values);
}

TEST(ServedRanks, AreThoseOfTheModelBestFirst) {
  const Model model = golden_encoder("bert_scores");
  const std::unique_ptr<LlmServer> server = served(model);
  const std::vector<std::string> documents = {"the cat", "a dog runs", "rain"};
  const auto want = model.rerank("who runs?", documents);
  ASSERT_TRUE(want.ok()) << want.error().str();
  for (const char* path : {"/rerank", "/v1/rerank", "/reranking", "/v1/reranking"}) {
    const JsonValue json = post_to(*server, path,
                                   R"({"query":"who runs?","top_n":2,"return_documents":true,
        "documents":["the cat",{"text":"a dog runs"},"rain"]})")
                               .json();
    ASSERT_EQ(at(json, "results").elements().size(), 2u) << path;
    for (size_t i = 0; i < 2; ++i) {
      const JsonValue& row = at(json, "results").elements()[i];
      const Ranked& ranked = (*want)[i];
      EXPECT_EQ(*at(row, "index").as_int("index"), ranked.index);
      EXPECT_EQ(static_cast<float>(*at(row, "relevance_score").as_double("score")), ranked.score);
      EXPECT_EQ(at(at(row, "document"), "text").text(),
                documents[static_cast<size_t>(ranked.index)]);
    }
  }
}

TEST(ServedEncoders, RefuseToWriteByName) {
  const std::unique_ptr<LlmServer> server = served(golden_encoder("bert"));
  const char* const chat = R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}]})";
  const std::pair<const char*, const char*> requests[] = {{"/v1/chat/completions", chat},
                                                          {"/v1/messages", chat},
                                                          {"/api/chat", chat},
                                                          {"/v1/completions", R"({"prompt":"a"})"},
                                                          {"/v1/responses", R"({"input":"a"})"},
                                                          {"/completion", R"({"prompt":"a"})"},
                                                          {"/api/generate", R"({"prompt":"a"})"}};
  for (const auto& [path, body] : requests) {
    const Answer answer = post_to(*server, path, body);
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, HasSubstr("model is an encoder (BertModel)")) << path;
  }
}

}  // namespace
}  // namespace loom::core::test
