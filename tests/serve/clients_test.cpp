// Requests of real clients: bodies without a type, special headers, fields of other servers. Each
// is supported or refused by name; nothing that changes a reply is ignored.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/dialects/fields.hpp"
#include "serve/server.hpp"
#include "stand_in.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Clients : public testing::Test {
 protected:
  void start(Model model, LlmServerOptions options = {}) {
    options.port = 0;
    options.service.name = "stories";
    options.service.version = "test";
    options.service.scheduler.session.context = 512;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(model), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body, std::string_view headers = {}) const {
    return ask(server_->port(), "POST", path, body, headers);
  }
  std::unique_ptr<LlmServer> server_;
};

const char* const kHi = R"("messages":[{"role":"user","content":"Hi"}])";

TEST_F(Clients, OfOllamaMayLeaveOutTheTypeOfABody) {
  start(stories());
  const char* const body =
      R"({"prompt":"Hi","stream":false,"options":{"num_predict":1,"temperature":0}})";
  for (const char* type : {"Content-Type: application/x-www-form-urlencoded\r\n",
                           "Content-Type: text/plain\r\n", "Content-Type:\r\n"}) {
    EXPECT_EQ(post("/api/generate", body, type).status, 200) << type;
    EXPECT_EQ(post("/v1/completions", body, type).status, 415) << type;
  }
  // A page of the web still has to be allowed.
  EXPECT_EQ(post("/api/generate", body, "Content-Type: text/plain\r\nOrigin: http://evil.test\r\n")
                .status,
            403);
}

TEST_F(Clients, FindWhatAModelCanDo) {
  start(stories());
  const JsonValue shown = post("/api/show", R"({"model":"stories"})").json();
  std::vector<std::string> can;
  for (const JsonValue& one : shown.find("capabilities")->elements()) can.push_back(one.text());
  EXPECT_THAT(can, testing::Contains("completion"));
  EXPECT_THAT(can, testing::Contains("tools"));
  const JsonValue& about = *shown.find("model_info");
  const std::string kind = about.find("general.architecture")->text();
  for (const char* key : {".context_length", ".embedding_length", ".block_count"})
    EXPECT_NE(about.find(kind + key), nullptr) << key;
  for (const char* key :
       {"license", "modelfile", "parameters", "template", "details", "modified_at"})
    EXPECT_NE(shown.find(key), nullptr) << key;
  const JsonValue version = ask(server_->port(), "GET", "/api/version").json();
  EXPECT_EQ(version.find("version")->text(), "0.12.6");
  EXPECT_EQ(version.find("loom")->text(), "test");
}

TEST_F(Clients, MaySendHeadersOfTheirOwnFromAllowedPages) {
  LlmServerOptions options;
  options.origins = {"http://mine.test"};
  start(stories(), options);
  const char* const asked = "authorization,x-stainless-lang,anthropic-version";
  const Answer answer =
      ask(server_->port(), "OPTIONS", "/v1/messages", {},
          cat("Origin: http://mine.test\r\nAccess-Control-Request-Headers: ", asked, "\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has(cat("Access-Control-Allow-Headers: ", asked))) << answer.head;
  const Answer odd = ask(server_->port(), "OPTIONS", "/v1/messages", {},
                         "Origin: http://mine.test\r\nAccess-Control-Request-Headers: <a>\r\n");
  EXPECT_TRUE(odd.has("Access-Control-Allow-Headers: authorization, content-type")) << odd.head;
}

TEST_F(Clients, GetErrorsInTheDialectOfTheRoute) {
  LlmServerOptions options;
  options.keys = {"secret"};
  start(stories(), options);
  EXPECT_THAT(post("/api/chat", "{}").body, testing::StartsWith(R"({"error":"a key is needed)"));
  EXPECT_THAT(post("/v1/messages", "{}").body,
              testing::StartsWith(R"({"type":"error","error":{"type":"authentication_error")"));
  EXPECT_THAT(post("/v1/chat/completions", "{}").body,
              testing::StartsWith(R"({"error":{"message":"a key is needed)"));
  EXPECT_THAT(ask(server_->port(), "GET", "/api/chat").body,
              testing::StartsWith(R"({"error":"/api/chat takes POST)"));
}

TEST_F(Clients, ThatSendNoMessagesAreToldSo) {
  start(stories());
  for (const auto& [path, error] : std::vector<std::pair<const char*, const char*>>{
           {"/v1/chat/completions", R"({"error":{"message":"messages is empty)"},
           {"/v1/chat/completions/input_tokens", R"({"error":{"message":"messages is empty)"},
           {"/v1/messages", R"({"type":"error","error":{"type":"invalid_request_error")"},
           {"/v1/messages/count_tokens", R"({"type":"error")"},
           {"/apply-template", R"({"error":{"message":"messages is empty)"}}) {
    const Answer answer = post(path, R"({"max_tokens":1,"messages":[]})");
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, testing::StartsWith(error)) << path;
    EXPECT_THAT(answer.body, HasSubstr("messages is empty")) << path;
  }
}

struct Refused {
  const char* path;
  const char* fields;
  const char* name;
};
const Refused kRefused[] = {
    {"/api/chat", R"("messages":[{"role":"user","content":"Hi","images":["aGk="]}])", "images"},
    {"/api/generate", R"("prompt":"Hi","images":["aGk="])", "images"},
    {"/v1/messages", R"("tools":[{"type":"web_search_20250305","name":"web_search"}],)",
     "tools[0]"},
    {"/v1/messages", R"("output_config":{"task_budget":3},)", "output_config.task_budget"},
    {"/v1/messages", R"("mcp_servers":[{"url":"x"}],)", "mcp_servers"},
    {"/v1/chat/completions", R"("tools":[{"type":"web_search"}],)", "tools[0]"},
    {"/v1/chat/completions", R"("web_search_options":{"a":1},)", "web_search_options"},
    {"/v1/chat/completions", R"("modalities":["text","audio"],)", "modalities"},
    {"/v1/chat/completions", R"("min_tokens":3,)", "min_tokens"},
    {"/v1/chat/completions", R"("stop_token_ids":[3],)", "stop_token_ids"},
    {"/v1/chat/completions", R"("bad_words":["a"],)", "bad_words"},
    {"/v1/chat/completions", R"("skip_special_tokens":false,)", "skip_special_tokens"},
    {"/v1/chat/completions", R"("prompt_logprobs":1,)", "prompt_logprobs"},
    {"/v1/chat/completions", R"("guided_regex":"a+",)", "guided_regex"},
    {"/v1/chat/completions", R"("structured_outputs":{"regex":"a+"},)", "structured_outputs.regex"},
    {"/v1/chat/completions", R"("length_penalty":2,)", "length_penalty"},
    {"/v1/chat/completions", R"("cache_salt":"",)", "cache_salt"},
    {"/v1/chat/completions", R"("reasoning_effort":"high",)", "reasoning_effort"},
    {"/v1/chat/completions", R"("reasoning_effort":"much",)", "reasoning_effort"},
    {"/v1/chat/completions", R"("prediction":{"type":"content","content":"a"},)", "prediction"},
    {"/v1/chat/completions", R"("verbosity":"low",)", "verbosity"},
    {"/v1/responses", R"("input":"a","reasoning":{"effort":"low"})", "reasoning effort"},
    {"/v1/responses", R"("input":"a","reasoning":{"summary":"detailed"})", "reasoning.summary"},
    {"/v1/responses", R"("input":"a","text":{"verbosity":"high"})", "text.verbosity"},
    {"/api/chat", R"("think":"high",)", "reasoning effort"},
};

TEST_F(Clients, AreToldTheNameOfAFieldThatIsNotSupported) {
  start(stories());
  for (const Refused& one : kRefused) {
    const std::string fields = one.fields;
    const std::string rest = fields.ends_with(',') ? cat(kHi, R"(,"max_tokens":1)") : "";
    const Answer answer = post(one.path, cat("{", fields, rest, "}"));
    EXPECT_EQ(answer.status, 400) << fields << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(one.name)) << fields;
  }
}

TEST_F(Clients, MaySendDefaultsOfFieldsThatAreNotSupported) {
  start(stories());
  const Answer answer = post("/v1/chat/completions", cat("{", kHi, R"(,"max_tokens":1,
      "min_tokens":0,"stop_token_ids":[],"skip_special_tokens":true,"length_penalty":1.0,
      "use_beam_search":false,"reasoning_effort":"none","verbosity":"medium","priority":0,
      "modalities":["text"],"prompt_logprobs":null})"));
  EXPECT_EQ(answer.status, 200) << answer.body;
}

// The text of the template shows which variables it supports.
TEST_F(Clients, SayHowHardToThinkInTheWordsOfTheTemplate) {
  struct Case {
    const char *chat_template, *effort, *shown;
  };
  const Case cases[] = {
      {"{{ messages[0].content }}[{{ reasoning_effort }}]", "high", "Hi[high]"},
      {"{{ messages[0].content }}[{{ enable_thinking }}]", "none", "Hi[False]"},
      {"{{ messages[0].content }}[{{ enable_thinking }}]", "low", "Hi[True]"},
  };
  for (const Case& one : cases) {
    ModelOptions loading;
    loading.chat_template = one.chat_template;
    Result<Engine> engine = Engine::create({.threads = 1});
    ASSERT_TRUE(engine.ok());
    const std::string path = loom_test::source_path("models/stories.entity");
    Result<Model> model = Model::load(*engine, path, loading);
    ASSERT_TRUE(model.ok()) << model.error().str();
    start(std::move(*model));
    const Answer answer =
        post("/v1/chat/completions", cat("{", kHi, R"(,"max_tokens":1,"verbose":true,)",
                                         R"("reasoning_effort":")", one.effort, "\"}"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(one.shown));
  }
}

std::string chat_text(const Answer& answer) {
  const JsonValue json = answer.json();
  const JsonValue* choices = json.find("choices");
  if (choices == nullptr) return answer.body;
  return choices->elements()[0].find("message")->find("content")->text();
}

TEST_F(Clients, HoldRepliesInTheWaysOfVllmAndAnthropic) {
  start(stories());
  const auto with = [&](const char* fields) {
    return chat_text(
        post("/v1/chat/completions", cat("{", kHi, R"(,"seed":1,"max_tokens":20,)", fields, "}")));
  };
  EXPECT_EQ(with(R"("guided_choice":["a \"b\""])"), "a \"b\"");
  EXPECT_EQ(with(R"("structured_outputs":{"choice":["yes"]})"), "yes");
  EXPECT_EQ(with(R"("guided_json":{"const":7})"), "7");
  EXPECT_EQ(with(R"("structured_outputs":{"json":"{\"const\":7}"})"), "7");
  const Answer anthropic =
      post("/v1/messages", cat("{", kHi, R"(,"max_tokens":20,"output_config":{"effort":"low",
      "format":{"type":"json_schema","schema":{"const":7}}}})"));
  EXPECT_THAT(anthropic.body, HasSubstr(R"("text":"7")"));
}

const char* const kTools =
    R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":
    "object","properties":{"a":{"const":1}},"required":["a"]}}}],)";

// The reply is a call, or a text of the schema, whatever the model prefers.
TEST_F(Clients, MayAskForStrictToolsAndAFormatTogether) {
  start(stories());
  for (int seed = 0; seed < 4; ++seed) {
    const Answer answer = post(
        "/v1/chat/completions",
        cat("{", kHi, R"(,"max_tokens":60,"seed":)", seed, ",", kTools,
            R"("response_format":{"type":"json_schema","json_schema":{"schema":{"const":7}}}})"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const JsonValue json = answer.json();
    const JsonValue& message = *json.find("choices")->elements()[0].find("message");
    const bool calls = message.find("tool_calls") != nullptr;
    EXPECT_TRUE(calls || message.find("content")->text() == "7") << answer.body;
  }
}

TEST_F(Clients, GetOneCallOfAToolThatTheyName) {
  start(stories());
  const Answer answer = post("/v1/chat/completions",
                             cat("{", kHi, R"(,"max_tokens":100,"seed":2,)", kTools,
                                 R"("tool_choice":{"type":"function","function":{"name":"f"}}})"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue json = answer.json();
  const JsonValue* calls = json.find("choices")->elements()[0].find("message")->find("tool_calls");
  ASSERT_NE(calls, nullptr) << answer.body;
  EXPECT_EQ(calls->elements().size(), 1u);
  EXPECT_EQ(json.find("choices")->elements()[0].find("finish_reason")->text(), "tool_calls");
}

TEST_F(Clients, MaySendAHistoryOfCallsWithoutTools) {
  start(stories());
  const char* const history = R"("messages":[{"role":"user","content":"Weather?"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":
      {"name":"weather","arguments":"{\"city\":\"Bonn\"}"}}]},
      {"role":"tool","tool_call_id":"1","content":"sunny"}])";
  const Answer with = post("/apply-template", cat("{", history, R"(,"tools":[{"type":"function",
      "function":{"name":"weather"}}]})"));
  const Answer without = post("/apply-template", cat("{", history, "}"));
  for (const Answer& answer : {with, without}) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("Bonn"));
    EXPECT_THAT(answer.body, HasSubstr("sunny"));
  }
  EXPECT_THAT(without.body, testing::Not(HasSubstr("You may call functions")));
}

// ---- leaks between clients ---------------------------------------------------------------------

int64_t cached(const Answer& answer) {
  const JsonValue json = answer.json();
  const JsonValue* usage = json.find("usage");
  if (usage == nullptr) return -1;
  return *usage->find("prompt_tokens_details")->find("cached_tokens")->as_int("cached");
}

TEST_F(Clients, LearnNothingOfPromptsOfOtherKeysAndSalts) {
  LlmServerOptions options;
  options.keys = {"first", "second"};
  start(stories(), options);
  const std::string prompt =
      R"({"prompt":"Once upon a time, there was a little girl named Lily who )"
      R"(liked to play in the park with her dog","max_tokens":1)";
  const auto asked = [&](const char* key, std::string_view salt) {
    return cached(post("/v1/completions", cat(prompt, salt, "}"),
                       cat("Authorization: Bearer ", key, "\r\n")));
  };
  EXPECT_EQ(asked("first", ""), 0);
  const int64_t own = asked("first", "");
  EXPECT_GT(own, 10);
  EXPECT_EQ(asked("second", ""), 0);
  EXPECT_EQ(asked("second", ""), own);
  EXPECT_EQ(asked("first", R"(,"cache_salt":"a")"), 0);
  EXPECT_EQ(asked("first", R"(,"cache_salt":"a")"), own);
  EXPECT_EQ(asked("first", R"(,"cache_salt":"b")"), 0);
  EXPECT_EQ(asked("second", R"(,"cache_salt":"a")"), 0);
  EXPECT_EQ(asked("first", ""), own);
}

TEST_F(Clients, WithoutKeysShareWhatHasTheSameSalt) {
  start(stories());
  const std::string prompt = R"({"prompt":"Tom had a red ball and a big dog","max_tokens":1)";
  const auto asked = [&](std::string_view salt) {
    return cached(post("/v1/completions", cat(prompt, salt, "}")));
  };
  EXPECT_EQ(asked(R"(,"cache_salt":"a")"), 0);
  EXPECT_EQ(asked(""), 0);
  EXPECT_GT(asked(""), 0);
  EXPECT_GT(asked(R"(,"cache_salt":"a")"), 0);
}

}  // namespace
}  // namespace loom::core::test
