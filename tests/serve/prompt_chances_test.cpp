// Probabilities of prompts (echo with logprobs of /v1/completions), compared with logits of the C++
// API and in the form that lm-eval reads.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

class PromptChances : public testing::Test {
 protected:
  PromptChances() {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.scheduler.session.context = 64;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
    EXPECT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view body) const {
    return ask(server_->port(), "POST", "/v1/completions", body);
  }
  // Natural logarithms of probabilities after each token but the last, computed here.
  std::vector<std::vector<double>> truth(const std::vector<TokenId>& ids) const {
    Result<ModelSession> session = model_.session({.context = 64});
    EXPECT_TRUE(session.ok());
    std::vector<std::vector<double>> out;
    const auto sink = [&](int64_t, std::span<const float> logits) -> Status {
      double sum = 0;
      for (const float v : logits) sum += std::exp(static_cast<double>(v));
      std::vector<double>& row = out.emplace_back();
      for (const float v : logits) row.push_back(static_cast<double>(v) - std::log(sum));
      return {};
    };
    EXPECT_TRUE(session->feed_all(std::span(ids).first(ids.size() - 1), sink).ok());
    return out;
  }
  const Model model_ = stories();
  std::unique_ptr<LlmServer> server_;
};

std::string body_of(const std::vector<TokenId>& ids, std::string_view more) {
  std::string out = R"({"prompt":[)";
  for (size_t i = 0; i < ids.size(); ++i) out += cat(i > 0 ? "," : "", ids[i]);
  return cat(out, "],", more, "}");
}

double real_of(const JsonValue& value) {
  return value.as_double("x").value_or(NAN);
}

TEST_F(PromptChances, AreThoseOfTheLogitsOfTheApi) {
  const std::vector<TokenId> ids = *model_.tokenize("Once upon a time there was a zebra. Tom");
  const Answer answer = post(body_of(ids, R"("max_tokens":1,"logprobs":5,"echo":true)"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue json = answer.json();
  const JsonValue& choice = json.find("choices")->elements()[0];
  EXPECT_THAT(choice.find("text")->text(), testing::StartsWith(*model_.detokenize(ids)));
  const JsonValue& all = *choice.find("logprobs");
  const auto& chances = all.find("token_logprobs")->elements();
  const auto& top = all.find("top_logprobs")->elements();
  const auto& offsets = all.find("text_offset")->elements();
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    ASSERT_EQ(all.find(key)->elements().size(), ids.size() + 1) << key;
  EXPECT_TRUE(chances[0].is_null());
  EXPECT_TRUE(top[0].is_null());
  const std::vector<std::vector<double>> rows = truth(ids);
  for (size_t i = 1; i < ids.size(); ++i) {
    const std::vector<double>& row = rows[i - 1];
    const double own = row[static_cast<size_t>(ids[i])];
    EXPECT_NEAR(real_of(chances[i]), own, 1e-5) << i;
    double likeliest = -INFINITY;
    bool has_own = false;
    for (const auto& [name, value] : top[i].members()) {
      likeliest = std::max(likeliest, real_of(value));
      has_own = has_own || value.as_double("x").value_or(0) == real_of(chances[i]);
    }
    EXPECT_NEAR(likeliest, *std::ranges::max_element(row), 1e-5) << i;
    EXPECT_TRUE(has_own) << i;
    EXPECT_GE(*offsets[i].as_int("x"), *offsets[i - 1].as_int("x"));
  }
  EXPECT_EQ(*json.find("usage")->find("completion_tokens")->as_int("x"), 1);
}

// lm-eval leaves the context and the token that is written out of the sum.
TEST_F(PromptChances, AreWhatTheModelSaidWhenItWroteTheText) {
  const std::vector<TokenId> context = *model_.tokenize("Once upon a time");
  Asked asked{context, {.max_tokens = 12}};
  asked.options.logprobs = true;
  asked.options.sampler.temperature = 0;
  const Generation written = alone(model_, asked, 64);
  std::vector<TokenId> ids = context;
  ids.insert(ids.end(), written.token_ids.begin(), written.token_ids.end());
  const Answer answer =
      post(body_of(ids, R"("max_tokens":1,"logprobs":1,"echo":true,"temperature":0)"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue json = answer.json();
  const JsonValue& all = *json.find("choices")->elements()[0].find("logprobs");
  const auto& chances = all.find("token_logprobs")->elements();
  const auto& top = all.find("top_logprobs")->elements();
  double sum = 0, expected = 0;
  for (const float one : written.logprobs) expected += static_cast<double>(one);
  for (size_t i = context.size(); i < ids.size(); ++i) {
    sum += real_of(chances[i]);
    double likeliest = -INFINITY;
    for (const auto& [name, value] : top[i].members())
      likeliest = std::max(likeliest, real_of(value));
    EXPECT_EQ(real_of(chances[i]), likeliest) << "the text is greedy";
  }
  EXPECT_EQ(sum, expected);
}

TEST_F(PromptChances, OfSeveralPromptsAndChoicesWithNothingWritten) {
  const Answer answer = post(
      R"({"prompt":["Tom","Lily and her dog"],"n":2,"max_tokens":0,"logprobs":0,"echo":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue json = answer.json();
  const auto& choices = json.find("choices")->elements();
  ASSERT_EQ(choices.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const std::string prompt = i < 2 ? "Tom" : "Lily and her dog";
    EXPECT_EQ(choices[i].find("text")->text(), prompt);
    const auto& chances = choices[i].find("logprobs")->find("token_logprobs")->elements();
    EXPECT_EQ(chances.size(), model_.tokenize(prompt)->size());
    EXPECT_EQ(choices[i].find("finish_reason")->text(), "length");
  }
  EXPECT_EQ(*json.find("usage")->find("completion_tokens")->as_int("x"), 0);
}

TEST_F(PromptChances, AreTheFirstEventOfAStream) {
  const std::string_view fields = R"("prompt":"Tom had a red ball","max_tokens":3,"logprobs":2,)"
                                  R"("echo":true,"temperature":0)";
  const JsonValue whole = post(cat("{", fields, "}")).json();
  const Answer stream = post(cat("{", fields, R"(,"stream":true})"));
  std::string text;
  size_t tokens = 0;
  for (size_t at = stream.body.find("data: {"); at != std::string::npos;
       at = stream.body.find("data: {", at + 1)) {
    const std::string line = stream.body.substr(at + 6, stream.body.find('\n', at) - at - 6);
    const JsonValue event = *parse_json(line, "event");
    const JsonValue& choice = event.find("choices")->elements()[0];
    text += choice.find("text")->text();
    const JsonValue* chances = choice.find("logprobs");
    if (!chances->is_null()) tokens += chances->find("tokens")->elements().size();
  }
  const JsonValue& choice = whole.find("choices")->elements()[0];
  EXPECT_EQ(text, choice.find("text")->text());
  EXPECT_EQ(tokens, choice.find("logprobs")->find("tokens")->elements().size());
}

TEST_F(PromptChances, OfAPromptThatDoesNotFitAreRefused) {
  const std::vector<TokenId> ids(65, 5);
  const Answer answer = post(body_of(ids, R"("max_tokens":1,"logprobs":1,"echo":true)"));
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_EQ(post(R"({"prompt":[],"logprobs":1,"echo":true})").status, 400);
}

}  // namespace
}  // namespace loom::core::test
