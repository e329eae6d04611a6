// Fields of /completion with details of the sampling.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

TEST(Native, TellsTheProbabilitiesThatATokenWasDrawnBy) {
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stories";
  options.service.version = "test";
  options.service.scheduler.session.context = 64;
  const auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok());
  const struct {
    const char* sampling;
    size_t most;  // tokens that are left by the cuts
  } cases[] = {{R"("temperature":1,"top_k":3,"top_p":1,"min_p":0)", 3},
               {R"("temperature":0)", 1},
               {R"("temperature":2,"top_k":5,"top_p":0.9,"min_p":0.01)", 5}};
  for (const auto& c : cases) {
    const Answer answer =
        ask((*server)->port(), "POST", "/completion",
            cat(R"({"prompt":"Once upon a time","n_predict":8,"seed":2,"n_probs":10,)",
                R"("post_sampling_probs":true,)", c.sampling, "}"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const JsonValue json = answer.json();
    const auto& tokens = json.find("completion_probabilities")->elements();
    ASSERT_EQ(tokens.size(), 8u);
    for (const JsonValue& token : tokens) {
      const double own = *token.find("prob")->as_double("prob");
      const auto& top = token.find("top_probs")->elements();
      ASSERT_LE(top.size(), c.most);
      double sum = 0;
      bool found = false;
      for (const JsonValue& one : top) {
        const double p = *one.find("prob")->as_double("prob");
        EXPECT_GT(p, 0.0);
        sum += p;
        if (*one.find("id")->as_int("id") != *token.find("id")->as_int("id")) continue;
        found = true;
        EXPECT_EQ(p, own);
      }
      EXPECT_TRUE(found);
      EXPECT_NEAR(sum, 1.0, 1e-6);
      EXPECT_EQ(token.find("logprob"), nullptr);
    }
  }
}

TEST(Native, WritesTheSameWithGuessesAndTellsThem) {
  Result<Engine> engine = Engine::create({.threads = 1});
  ASSERT_TRUE(engine.ok());
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stories";
  options.service.version = "test";
  options.service.scheduler.session.context = 128;
  options.service.scheduler.guesses = 5;
  Result<Model> draft = Model::load(*engine, loom_test::source_path("models/stories-draft.entity"));
  ASSERT_TRUE(draft.ok()) << draft.error().str();
  options.service.scheduler.draft = *draft;
  const auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  for (const char* temperature : {"0", "1"}) {
    const auto text = [&](const char* more) {
      return ask((*server)->port(), "POST", "/completion",
                 cat(R"({"prompt":"Once upon a time","n_predict":40,"seed":2,"temperature":)",
                     temperature, more, "}"))
          .json();
    };
    const JsonValue guessed = text(""), alone = text(R"(,"speculative.n_max":0)");
    EXPECT_EQ(guessed.find("content")->text(), alone.find("content")->text());
    const JsonValue& timings = *guessed.find("timings");
    ASSERT_NE(timings.find("draft_n"), nullptr);
    const int64_t all = *timings.find("draft_n")->as_int("n");
    const int64_t right = *timings.find("draft_n_accepted")->as_int("n");
    EXPECT_GT(right, 5);
    EXPECT_GE(all, right);
    EXPECT_EQ(alone.find("timings")->find("draft_n"), nullptr);
  }
  const Answer metrics = ask((*server)->port(), "GET", "/metrics", "");
  EXPECT_THAT(metrics.body, testing::Not(testing::HasSubstr("num_draft_tokens_total 0\n")));
}

TEST(Predict, AnswersEveryInstanceOrTellsWhatIsWrong) {
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stories";
  options.service.version = "test";
  options.service.scheduler.session.context = 128;
  const auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  const auto chat = [](const char* more) {
    return cat(R"({"@requestFormat":"chatCompletions","max_tokens":6,"seed":1,"messages":)",
               R"([{"role":"user","content":"Tell me a story."}])", more, "}");
  };
  const Answer both = ask((*server)->port(), "POST", "/predict",
                          cat(R"({"instances":[)", chat(""), ",", chat(R"(,"n":2)"), "]}"));
  ASSERT_EQ(both.status, 200) << both.body;
  const JsonValue json = both.json();
  const auto& predictions = json.find("predictions")->elements();
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_EQ(predictions[0].find("choices")->elements().size(), 1u);
  EXPECT_EQ(predictions[1].find("choices")->elements().size(), 2u);
  const struct {
    std::string body;
    const char* message;
  } wrong[] = {{"{}", "instances must be a list"},
               {R"({"instances":[]})", "instances must be a list"},
               {R"({"instances":[3]})", "instances[0] must be an object"},
               {R"({"instances":[{"messages":[]}]})", "instances[0].@requestFormat must be"},
               {cat(R"({"instances":[)", chat(R"(,"stream":true)"), "]}"), "are not streamed"},
               {cat(R"({"instances":[)", chat(R"(,"n":99)"), "]}"), "n must be an integer"}};
  for (const auto& w : wrong) {
    const Answer answer = ask((*server)->port(), "POST", "/predict", w.body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, testing::HasSubstr(w.message));
  }
}

}  // namespace
}  // namespace loom::core::test
