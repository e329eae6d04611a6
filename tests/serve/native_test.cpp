// Fields of /completion that tell how a token was drawn.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

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

}  // namespace
}  // namespace loom::core::test
