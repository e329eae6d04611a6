// Conversations that end with a turn of the assistant: replies continue it, unless the request says
// otherwise.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stand_in.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::EndsWith;

class LastTurn : public testing::Test {
 protected:
  void start(Model model, bool prefill = true) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "model";
    options.service.version = "test";
    options.service.prefill = prefill;
    options.service.scheduler.session.context = 128;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(model), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(server_->port(), "POST", path, body);
  }
  std::string prompt(std::string_view messages, std::string_view more = "") const {
    const Answer answer =
        post("/apply-template", cat(R"({"messages":[)", messages, "]", more, "}"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().find("prompt")->text();
  }

  std::unique_ptr<LlmServer> server_;
};

constexpr const char* kAsked = R"({"role":"user","content":"A story."})";
constexpr const char* kBegun =
    R"({"role":"user","content":"A story."},{"role":"assistant","content":"Once upon"})";

TEST_F(LastTurn, OfTheAssistantIsTheBeginningOfTheReply) {
  start(stories());
  EXPECT_EQ(prompt(kBegun), prompt(kAsked) + "Once upon");
  EXPECT_EQ(prompt(kBegun, R"(,"continue_final_message":true)"), prompt(kBegun));
  const std::string quoted = dump_json(JsonValue::string(prompt(kBegun)));
  const Answer text =
      post("/v1/completions", cat(R"({"seed":3,"max_tokens":9,"prompt":)", quoted, "}"));
  const std::string rest = text.json().find("choices")->elements()[0].find("text")->text();
  ASSERT_FALSE(rest.empty());
  const std::string body = cat(R"({"seed":3,"max_tokens":9,"messages":[)", kBegun, "]}");
  const Answer chat = post("/v1/chat/completions", body);
  EXPECT_EQ(chat.json().find("choices")->elements()[0].find("message")->find("content")->text(),
            rest);
  EXPECT_EQ(chat.json().find("__verbose"), nullptr);
  const Answer message = post("/v1/messages", body);
  EXPECT_EQ(message.json().find("content")->elements()[0].find("text")->text(), rest);
}

TEST_F(LastTurn, IsATurnOfItsOwnWhereTheRequestOrTheServerSaysSo) {
  start(stories());
  const std::string own = prompt(kBegun, R"(,"continue_final_message":false)");
  EXPECT_NE(own, prompt(kBegun));
  EXPECT_EQ(prompt(kBegun, R"(,"add_generation_prompt":true)"), own);
  start(stories(), false);
  EXPECT_EQ(prompt(kBegun), own);
  EXPECT_EQ(prompt(kBegun, R"(,"continue_final_message":true)"), prompt(kAsked) + "Once upon");
}

TEST_F(LastTurn, IsNotPutWhereTheModelThinksFirst) {
  const StandIn model(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]<think>\n{% endif %}",
      {"aa"});
  start(model.load());
  EXPECT_THAT(prompt(kBegun), EndsWith("[assistant]Once upon[assistant]<think>\n"));
  EXPECT_THAT(prompt(kBegun, R"(,"continue_final_message":true)"),
              EndsWith("[assistant]<think>\nOnce upon"));
}

}  // namespace
}  // namespace loom::core::test
