// Replies that are held to a format, and samplers, in the dialects that have them.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

class Formats : public testing::Test {
 protected:
  void SetUp() override {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.version = "test";
    options.service.scheduler.session.context = 256;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  JsonValue post(std::string_view path, std::string_view body) const {
    const Answer answer = ask(server_->port(), "POST", path, body, {});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  static std::string chat_text(const JsonValue& reply) {
    return reply.find("choices")->elements()[0].find("message")->find("content")->text();
  }

  const Model model_ = stories();
  std::unique_ptr<LlmServer> server_;
};

const char* const kPet =
    R"({"type":"object","properties":{"kind":{"enum":["cat","dog"]},
        "age":{"type":"integer","minimum":1,"maximum":30}},"required":["kind","age"],
        "additionalProperties":false})";

void expect_pet(const std::string& text) {
  const Result<JsonValue> json = parse_json(text, "reply");
  ASSERT_TRUE(json.ok()) << text;
  ASSERT_EQ(json->members().size(), 2u) << text;
  EXPECT_THAT(json->find("kind")->text(), testing::AnyOf("cat", "dog"));
  EXPECT_LE(*json->find("age")->as_int("age"), 30);
}

const std::string kAsk = R"({"messages":[{"role":"user","content":"A pet?"}],"seed":4,)";

TEST_F(Formats, HoldRepliesToASchemaInEveryDialect) {
  expect_pet(chat_text(
      post("/v1/chat/completions", kAsk + R"("response_format":{"type":"json_schema","json_schema":
                            {"name":"pet","strict":true,"schema":)" +
                                       kPet + "}}}")));
  const JsonValue response =
      post("/v1/responses", std::string(R"({"input":"A pet?","seed":4,"text":{"format":
      {"type":"json_schema","name":"pet","schema":)") +
                                kPet + "}}}");
  expect_pet(
      response.find("output")->elements()[0].find("content")->elements()[0].find("text")->text());
  expect_pet(post("/api/chat", kAsk + R"("stream":false,"format":)" + kPet + "}")
                 .find("message")
                 ->find("content")
                 ->text());
  expect_pet(
      post("/completion", std::string(R"({"prompt":"A pet:","seed":4,"json_schema":)") + kPet + "}")
          .find("content")
          ->text());
}

TEST_F(Formats, HoldRepliesToAGrammar) {
  const JsonValue reply =
      post("/completion", R"({"prompt":"Is it?","seed":4,"grammar":"root ::= \"yes\" | \"no\""})");
  EXPECT_THAT(reply.find("content")->text(), testing::AnyOf("yes", "no"));
  EXPECT_EQ(reply.find("stop_type")->text(), "eos");
}

TEST_F(Formats, AnObjectIsJson) {
  const std::string ask = kAsk + R"("max_tokens":120,"temperature":0.3,)";
  const JsonValue reply =
      post("/v1/chat/completions", ask + R"("response_format":{"type":"json_object"}})");
  EXPECT_EQ(chat_text(reply).substr(0, 1), "{");
}

TEST_F(Formats, SamplersDecideInTheDialectsThatHaveThem) {
  const std::string plain = R"({"prompt":"Once upon a time","temperature":0,"n_predict":30)";
  const std::string text = post("/completion", plain + "}").find("content")->text();
  const char* const fields[] = {R"("logit_bias":[[14,false],[16,-100]])", R"("presence_penalty":2)",
                                R"("frequency_penalty":1.5)"};
  for (const char* field : fields) {
    EXPECT_NE(post("/completion", plain + "," + field + "}").find("content")->text(), text)
        << field;
  }
  const std::string hot =
      R"({"prompt":"Once upon a time","seed":5,"temperature":1,"max_tokens":30)";
  const auto completion = [&](const std::string& body) {
    return post("/v1/completions", body).find("choices")->elements()[0].find("text")->text();
  };
  const std::string drawn = completion(hot + "}");
  EXPECT_EQ(completion(hot + "}"), drawn) << "the same request, the same text";
  for (const char* field : {R"("mirostat":2,"mirostat_tau":1)", R"("top_n_sigma":0.1)",
                            R"("typical_p":0.05)", R"("logit_bias":{"14":-100,"16":-100})"}) {
    EXPECT_NE(completion(hot + "," + field + "}"), drawn) << field;
    EXPECT_EQ(completion(hot + "," + field + "}"), completion(hot + "," + field + "}")) << field;
  }
}

}  // namespace
}  // namespace loom::core::test
