#include "serve/server.hpp"

#include <gmock/gmock.h>

#include <map>
#include <thread>

#include "client.hpp"
#include "serve/dialects/fields.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Served : public testing::Test {
 protected:
  void start(LlmServerOptions options = {}) {
    options.port = 0;
    options.service.name = "stories";
    options.service.version = "test";
    if (options.service.scheduler.session.context == 0)
      options.service.scheduler.session.context = 128;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  uint16_t port() const { return server_->port(); }
  Answer post(std::string_view path, std::string_view body, std::string_view headers = {}) const {
    return ask(port(), "POST", path, body, headers);
  }
  static std::string message(const Answer& answer) {
    const JsonValue json = answer.json();
    const JsonValue* error = json.find("error");
    if (error == nullptr) return "no error: " + answer.body;
    return error->is_string() ? error->text() : error->find("message")->text();
  }

  const Model model_ = stories();
  std::unique_ptr<LlmServer> server_;
};

const char* const kChat =
    R"({"messages":[{"role":"user","content":"Tell me a story."}],"seed":3,"max_tokens":9)";

// The texts of "data: " lines, by the path to them.
std::string joined(const std::string& stream, const char* a, const char* b) {
  std::string out;
  for (size_t at = stream.find("data: {"); at != std::string::npos;
       at = stream.find("data: {", at + 1)) {
    const Result<JsonValue> json =
        parse_json(stream.substr(at + 6, stream.find('\n', at) - at - 6), "event");
    EXPECT_TRUE(json.ok());
    const JsonValue* choices = json->find("choices");
    const JsonValue* from = choices == nullptr            ? &*json
                            : choices->elements().empty() ? nullptr
                                                          : &choices->elements().front();
    if (from != nullptr && *a != '\0') from = from->find(a);
    if (from != nullptr) from = from->find(b);
    if (from != nullptr) out += from->text();
  }
  return out;
}

TEST_F(Served, AStreamHasTheTextOfTheWholeAnswerInEveryDialect) {
  start();
  const Answer whole = post("/v1/chat/completions", std::string(kChat) + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const JsonValue json = whole.json();
  const std::string text =
      json.find("choices")->elements()[0].find("message")->find("content")->text();
  ASSERT_FALSE(text.empty());
  const Answer stream = post("/v1/chat/completions", std::string(kChat) + R"(,"stream":true})");
  EXPECT_EQ(joined(stream.body, "delta", "content"), text);
  EXPECT_TRUE(stream.has("Content-Type: text/event-stream"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  const Answer anthropic = post("/v1/messages", std::string(kChat) + R"(,"stream":true})");
  EXPECT_EQ(joined(anthropic.body, "delta", "text"), text);
  const Answer messages = post("/v1/messages", std::string(kChat) + "}");
  EXPECT_EQ(messages.json().find("content")->elements()[0].find("text")->text(), text);
  EXPECT_EQ(messages.json().find("stop_reason")->text(), "max_tokens");
  const std::string input = R"({"input":"Tell me a story.","seed":3,"max_output_tokens":9)";
  const Answer response = post("/v1/responses", input + "}");
  EXPECT_EQ(response.json()
                .find("output")
                ->elements()[0]
                .find("content")
                ->elements()[0]
                .find("text")
                ->text(),
            text)
      << response.body;
  EXPECT_EQ(response.json().find("status")->text(), "incomplete");
  const Answer events = post("/v1/responses", input + R"(,"stream":true})");
  EXPECT_EQ(joined(events.body, "", "delta"), text);
  EXPECT_THAT(events.body, HasSubstr("event: response.incomplete\n"));
  int64_t number = 0;
  for (size_t at = 0; (at = events.body.find("\"sequence_number\":", at)) != std::string::npos;
       ++at)
    EXPECT_EQ(std::atoi(events.body.c_str() + at + 18), number++);
  EXPECT_GT(number, 8);
  const Answer ollama = post("/api/chat",
                             R"({"messages":[{"role":"user","content":"Tell me a story."}],
      "stream":false,"options":{"seed":3,"num_predict":9,"temperature":1,"top_k":0,"top_p":1}})");
  EXPECT_EQ(ollama.json().find("message")->find("content")->text(), text) << ollama.body;
  const Answer generate = post("/api/generate",
                               R"({"prompt":"Tell me a story.","stream":false,
      "options":{"seed":3,"num_predict":9,"temperature":1,"top_k":0,"top_p":1}})");
  EXPECT_EQ(generate.json().find("response")->text(), text);
  // As the template writes it, for the routes that take a prompt.
  const Answer prompt = post("/apply-template", std::string(kChat) + "}");
  const std::string quoted = dump_json(*prompt.json().find("prompt"));
  const Answer native =
      post("/completion",
           cat(R"({"seed":3,"n_predict":9,"temperature":1,"top_k":0,"top_p":1,"min_p":0,)",
               "\"prompt\":", quoted, "}"));
  EXPECT_EQ(native.json().find("content")->text(), text) << native.body;
  const Answer legacy = post(
      "/v1/completions", cat(R"({"seed":3,"max_tokens":9,"stream":true,"prompt":)", quoted, "}"));
  EXPECT_EQ(joined(legacy.body, "", "text"), text);
}

TEST_F(Served, TellsChancesOfTokensAndUsage) {
  start();
  const Answer answer = post("/v1/chat/completions",
                             std::string(kChat) + R"(,"logprobs":true,"top_logprobs":3,"n":2})");
  const JsonValue json = answer.json();
  ASSERT_EQ(json.find("choices")->elements().size(), 2u) << answer.body;
  for (const JsonValue& choice : json.find("choices")->elements()) {
    const auto& tokens = choice.find("logprobs")->find("content")->elements();
    EXPECT_EQ(tokens.size(), 9u);
    std::string text;
    for (const JsonValue& token : tokens) {
      text += token.find("token")->text();
      EXPECT_LE(*token.find("logprob")->as_double("logprob"), 0.0);
      EXPECT_EQ(token.find("top_logprobs")->elements().size(), 3u);
    }
    EXPECT_EQ(text, choice.find("message")->find("content")->text());
  }
  EXPECT_NE(json.find("choices")->elements()[0].find("message")->find("content")->text(),
            json.find("choices")->elements()[1].find("message")->find("content")->text());
  EXPECT_EQ(*json.find("usage")->find("completion_tokens")->as_int("n"), 18);
  const Answer legacy =
      post("/v1/completions", R"({"prompt":["Tom","Lily and"],"max_tokens":4,"logprobs":2})");
  const auto choices = legacy.json().find("choices")->elements();
  ASSERT_EQ(choices.size(), 2u);
  const auto& offsets = choices[1].find("logprobs")->find("text_offset")->elements();
  EXPECT_EQ(*offsets[0].as_int("offset"), 0);
  EXPECT_GT(*offsets[1].as_int("offset"), 0);
  const Answer echo =
      post("/v1/completions", R"({"prompt":["Tom","Lily and"],"max_tokens":4,"echo":true})");
  EXPECT_THAT(echo.json().find("choices")->elements()[1].find("text")->text(),
              testing::StartsWith("Lily and"));
}

TEST_F(Served, AStopStringEndsATextAndIsTold) {
  start();
  const std::string body = R"("prompt":"Once upon a time","temperature":0,"stop":["zebra"," was"])";
  const Answer native = post("/completion", "{" + body + "}");
  EXPECT_EQ(native.json().find("stop_type")->text(), "word") << native.body;
  EXPECT_EQ(native.json().find("stopping_word")->text(), " was");
  EXPECT_EQ(native.json().find("content")->text().find(" was"), std::string::npos);
  const Answer stream = post("/v1/completions", "{" + body + R"(,"stream":true})");
  EXPECT_EQ(joined(stream.body, "", "text"), native.json().find("content")->text());
  EXPECT_THAT(stream.body, HasSubstr(R"("finish_reason":"stop")"));
}

TEST_F(Served, EveryBadRequestGetsALineThatSaysWhatToDo) {
  start();
  struct Row {
    const char* path;
    const char* body;
    int status;
    const char* message;
  };
  const char* const chat = "/v1/chat/completions";
  const Row rows[] = {
      {chat, "{", 400, "the body: at byte 1: expected a key or '}', found the end of the text"},
      {chat, "[]", 400, "the body must be a JSON object; got an array"},
      {chat, "{}", 400, "messages is missing: a list of messages"},
      {chat, R"({"messages":"hi"})", 400, "messages must be a list of messages; got \"hi\""},
      {chat, R"({"messages":[3]})", 400, "messages[0].role must be a string, \"user\" or another"},
      {chat, R"({"messages":[{"role":"user"}]})", 400, "messages[0].content is missing"},
      {chat, R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400,
       "messages[0].content may hold parts of type \"text\" alone; got \"image_url\""},
      {chat, R"({"messages":[],"temperature":"hot"})", 400,
       "temperature must be a number; got \"hot\""},
      {chat, R"({"messages":[],"n":17})", 400, "n must be an integer from 1 to 16; got 17"},
      {chat, R"({"messages":[],"stop":[1]})", 400,
       "stop must be a string or a list of strings; got 1"},
      {chat, R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]})", 400,
       "tools[0]: a function needs a name"},
      {chat, R"({"messages":[],"response_format":{"type":"xml"}})", 400,
       "response_format.type must be \"text\", \"json_object\" or \"json_schema\"; got \"xml\""},
      {chat, R"({"messages":[],"response_format":{"type":"json_schema"}})", 400,
       "response_format.json_schema.schema is missing"},
      {chat, R"({"messages":[],"logit_bias":[[1]]})", 400,
       "logit_bias is a list of [token, bias]; got an array"},
      {chat,
       R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema",
          "json_schema":{"schema":{"properties":{"a":{"not":{}}}}}}})",
       400, "#/properties/a/not: the keyword \"not\" cannot be held to"},
      {chat, R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":2})", 400,
       "top_logprobs needs \"logprobs\": true beside it"},
      {"/v1/completions", "{}", 400, "prompt is missing: a text, tokens, or a list of them"},
      {"/v1/completions", R"({"prompt":[5000]})", 400,
       "a token of prompt must be an integer from 0 to 1023; got 5000"},
      {"/v1/completions", R"({"prompt":""})", 400,
       "the prompt holds no token; a text needs at least one to begin with"},
      {"/v1/responses", "{}", 400, "input is missing: a text, or a list of messages"},
      {"/v1/responses", R"({"input":[{"role":7}]})", 400,
       "input[0].role must be a string, \"user\" or another"},
      {"/v1/responses", R"({"input":"a","previous_response_id":"resp_1"})", 400,
       "previous_response_id is not supported here; leave it out"},
      {"/v1/messages", R"({"messages":[{"role":"user","content":"a"}]})", 400,
       "max_tokens is missing: the most tokens that the answer may have"},
      {"/api/generate", R"({"prompt":"a","options":{"num_predict":"x"}})", 400,
       "num_predict must be an integer from -2 to 2147483647; got \"x\""},
      {"/api/embed", R"({"input":7})", 400,
       "input must be a text, a list of tokens, or a list of 1 to 2048 of them; got 7"},
      {"/v1/embeddings", R"({"input":"a","encoding_format":"hex"})", 400,
       "encoding_format must be \"float\" or \"base64\"; got \"hex\""},
      {"/v1/embeddings", R"({"input":["a",[true]]})", 400,
       "a token of prompt must be an integer from 0 to 1023; got true"},
      {"/rerank", R"({"query":"a","documents":[]})", 400,
       "documents must be a list of 1 to 2048 texts"},
      {"/completion", R"({"prompt":"a","grammar":"root ::= a"})", 400,
       "the grammar names the rule a and does not say it"},
      {"/detokenize", R"({"tokens":["a"]})", 400,
       "a token of tokens must be an integer from 0 to 1023; got \"a\""},
      {"/v1/nothing", "{}", 404, "nothing is at /v1/nothing; see loom serve --help"},
      {"/v1/models", "{}", 405, "/v1/models takes GET"},
  };
  for (const Row& row : rows) {
    const Answer answer = post(row.path, row.body);
    EXPECT_EQ(answer.status, row.status) << row.body;
    EXPECT_EQ(message(answer), row.message) << row.body;
  }
  std::string words;
  for (int i = 0; i < 200; ++i) words += " story";
  const Answer longer = post("/v1/completions", cat(R"({"prompt":")", words, "\"}"));
  EXPECT_EQ(longer.json().find("error")->find("code")->text(), "context_length_exceeded");
  EXPECT_EQ(message(longer),
            "the prompt has 200 tokens, which exceeds the available context size of 128; "
            "send less text");
  EXPECT_EQ(longer.json().find("error")->find("type")->text(), "exceed_context_size_error");
  EXPECT_EQ(*longer.json().find("error")->find("n_ctx")->as_int(""), 128);
}

TEST_F(Served, UnknownFieldsAreIgnoredUnlessStrict) {
  start();
  EXPECT_EQ(post("/v1/chat/completions", std::string(kChat) + R"(,"new_thing":1})").status, 200);
  LlmServerOptions options;
  options.service.strict = true;
  start(options);
  EXPECT_EQ(message(post("/v1/chat/completions", std::string(kChat) + R"(,"new_thing":1})")),
            "unknown field new_thing");
  EXPECT_EQ(post("/v1/chat/completions", std::string(kChat) + R"(,"user":"me","temperature":null})")
                .status,
            200);
}

TEST_F(Served, NoPageOfTheWebAndNoStrangerMayAsk) {
  LlmServerOptions options;
  options.keys = {"first-key", "second"};
  options.origins = {"http://mine.test"};
  options.hosts = {"box.lan"};
  start(options);
  struct Row {
    const char* headers;
    int status;
  };
  const Row rows[] = {
      {"", 401},
      {"Authorization: Bearer first-ke\r\n", 401},
      {"Authorization: Bearer first-key2\r\n", 401},
      {"Authorization: first-key\r\n", 401},
      {"Authorization: Bearer first-key\r\n", 200},
      {"authorization: bearer second\r\n", 200},
      {"X-Api-Key: second\r\n", 200},
      {"X-Api-Key: \r\n", 401},
      {"X-Api-Key: second\r\nOrigin: http://evil.test\r\n", 403},
      {"X-Api-Key: second\r\nOrigin: null\r\n", 403},
      {"X-Api-Key: second\r\nOrigin: http://mine.test\r\n", 200},
      {"X-Api-Key: second\r\nHost: evil.test\r\n", 403},
      {"X-Api-Key: second\r\nHost: 127.0.0.1.evil.test:80\r\n", 403},
      {"X-Api-Key: second\r\nHost: \r\n", 403},
      {"X-Api-Key: second\r\nHost: localhost:80\r\n", 200},
      {"X-Api-Key: second\r\nHost: [::1]:80\r\n", 200},
      {"X-Api-Key: second\r\nHost: BOX.lan\r\n", 200},
  };
  for (const Row& row : rows)
    EXPECT_EQ(ask(port(), "GET", "/v1/models", {}, row.headers).status, row.status) << row.headers;
  EXPECT_EQ(ask(port(), "GET", "/health").status, 200);
  const std::string key = "X-Api-Key: second\r\n";
  EXPECT_EQ(post("/tokenize", R"({"content":"a"})", key + "Content-Type: text/plain\r\n").status,
            415);
  EXPECT_EQ(post("/tokenize", R"({"content":"a"})",
                 key + "Content-Type: application/json; charset=utf-8\r\n")
                .status,
            200);
  EXPECT_EQ(ask(port(), "OPTIONS", "/v1/models", {}, "Origin: http://mine.test\r\n").status, 200);
  EXPECT_EQ(ask(port(), "OPTIONS", "/v1/models", {}, "Origin: http://evil.test\r\n").status, 403);
  EXPECT_TRUE(ask(port(), "GET", "/v1/models", {}, key + "Origin: http://mine.test\r\n")
                  .has("Access-Control-Allow-Origin: http://mine.test"));
}

TEST_F(Served, ItsOwnPageMayAskAndRunsNoScriptButItsOwn) {
  LlmServerOptions options;
  options.keys = {"secret"};
  start(options);
  for (const char* path : {"/", "/page/page.mjs", "/page/chats.mjs", "/page/page.css"}) {
    const Answer page = ask(port(), "GET", path);
    EXPECT_EQ(page.status, 200) << path;
    EXPECT_TRUE(page.has("Content-Security-Policy: default-src 'none'; script-src 'self'")) << path;
  }
  EXPECT_THAT(ask(port(), "GET", "/").body, HasSubstr("<!doctype html>"));
  EXPECT_TRUE(ask(port(), "GET", "/page/page.mjs").has("Content-Type: text/javascript"));
  const auto from = [&](std::string_view origin) {
    return post("/v1/chat/completions", std::string(kChat) + "}",
                cat("Authorization: Bearer secret\r\nOrigin: ", origin, "\r\n"))
        .status;
  };
  EXPECT_EQ(from("http://127.0.0.1"), 200);  // as ask() calls the server
  EXPECT_EQ(from("https://127.0.0.1"), 200);
  EXPECT_EQ(from("http://127.0.0.1:1"), 403);
  EXPECT_EQ(from("http://127.0.0.1.evil.test"), 403);
}

TEST_F(Served, PagesOfThisMachineMayAskWhereTheyAreLetIn) {
  LlmServerOptions options;
  options.origins = {"localhost"};
  start(options);
  struct Row {
    const char* origin;
    int status;
  };
  const Row rows[] = {{"http://localhost", 200},      {"https://127.0.0.1:8443", 200},
                      {"http://127.0.0.1:3000", 200}, {"http://[::1]:3000", 200},
                      {"http://10.0.0.1", 403},       {"http://localhost.evil.test", 403},
                      {"http://notlocalhost", 403},   {"http://127.0.0.1:80@evil.test", 403},
                      {"file://localhost", 403}};
  for (const Row& row : rows) {
    const Answer answer = ask(port(), "GET", "/v1/models", {}, cat("Origin: ", row.origin, "\r\n"));
    EXPECT_EQ(answer.status, row.status) << row.origin;
    EXPECT_EQ(answer.has(cat("Access-Control-Allow-Origin: ", row.origin)), row.status == 200);
  }
}

TEST_F(Served, AnAddressThatOthersReachNeedsAKey) {
  LlmServerOptions options;
  options.address = "0.0.0.0";
  const auto server = LlmServer::start(model_, options);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().message,
            "others can reach 0.0.0.0: give keys with --api-key-file or LOOM_API_KEY, or listen at "
            "127.0.0.1");
}

TEST_F(Served, AFullQueueSaysWhenToComeAgain) {
  LlmServerOptions options;
  options.service.scheduler.sessions = 1;
  options.service.scheduler.waiting = 2;
  start(options);
  const Answer large = post("/v1/chat/completions", std::string(kChat) + R"(,"n":4})");
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(message(large), "the request asks for 4 texts at once; this server takes 3");
  std::vector<std::thread> clients;
  std::mutex mutex;
  std::map<int, int> statuses;
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&] {
      const Answer answer =
          post("/completion", R"({"prompt":"Tom","n_predict":100,"ignore_eos":true})");
      const std::lock_guard lock(mutex);
      ++statuses[answer.status];
      EXPECT_EQ(answer.has("Retry-After: 1"), answer.status == 429);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GE(statuses[200], 3);
  EXPECT_EQ(statuses[200] + statuses[429], 12);
}

TEST_F(Served, ATextWhoseClientIsGoneEnds) {
  start();
  {
    Socket socket(port());
    const std::string body = R"({"prompt":"Tom","stream":true,"ignore_eos":true,"n_predict":-1})";
    socket.send(
        cat("POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
            "\r\nContent-Length: ",
            body.size(), "\r\n\r\n", body));
    EXPECT_THAT(socket.receive(), HasSubstr("200 OK"));
  }
  EXPECT_EQ(post("/tokenize", R"({"content":"a"})").status, 200);
  EXPECT_TRUE(wait_until([&] { return server_->service().scheduler().counts().running == 0; }));
}

TEST_F(Served, DrainsWhatRunsAndEndsStreamsWithAnErrorWhenItMust) {
  LlmServerOptions options;
  options.service.scheduler.session.context = 512;
  options.service.context_shift = true;  // texts that do not end by themselves
  start(options);
  Socket socket(port());
  const std::string body =
      R"({"prompt":"Tom","stream":true,"ignore_eos":true,"max_tokens":1000000000,"n":4})";
  socket.send(
      cat("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
          "application/json\r\nContent-Length: ",
          body.size(), "\r\n\r\n", body));
  std::string all = socket.receive();
  EXPECT_FALSE(server_->drain(0));
  EXPECT_FALSE(Socket(port()).good() && ask(port(), "GET", "/health").status == 200);
  server_.reset();
  all += socket.receive_all();
  EXPECT_TRUE(socket.ended());
  EXPECT_THAT(all, HasSubstr("the server stops"));
}

TEST_F(Served, MetricsAndPropertiesAreRead) {
  start();
  post("/completion", R"({"prompt":"Tom","n_predict":3,"ignore_eos":true})");
  const Answer metrics = ask(port(), "GET", "/metrics");
  EXPECT_THAT(metrics.body, HasSubstr("# TYPE loom_texts_total counter\nloom_texts_total 1\n"));
  EXPECT_THAT(metrics.body, HasSubstr("\nloom_written_tokens_total 3\n"));
  EXPECT_EQ(ask(port(), "GET", "/props").json().find("system_fingerprint")->text(),
            server_->service().fingerprint());
  EXPECT_EQ(ask(port(), "GET", "/v1/models/stories").status, 200);
  EXPECT_EQ(ask(port(), "GET", "/v1/models/other").status, 404);
  EXPECT_EQ(ask(port(), "GET", "/api/tags").json().find("models")->elements().size(), 1u);
}

TEST_F(Served, TimesAreTheHistogramsOfPrometheus) {
  start();
  for (int i = 0; i < 3; ++i)
    post("/completion", R"({"prompt":"Tom","n_predict":4,"ignore_eos":true})");
  const std::string text = ask(port(), "GET", "/metrics").body;
  for (const char* name : {"loom_time_to_first_token_seconds", "loom_request_seconds"}) {
    EXPECT_THAT(text, HasSubstr(cat("# TYPE ", name, " histogram\n")));
    EXPECT_THAT(text, HasSubstr(cat(name, "_bucket{le=\"+Inf\"} 3\n")));
    EXPECT_THAT(text, HasSubstr(cat(name, "_count 3\n")));
  }
  EXPECT_THAT(text, HasSubstr("loom_time_between_tokens_seconds_count 9\n"));
  EXPECT_THAT(text, HasSubstr("llamacpp:tokens_predicted_total 12\n"));
}

TEST(Histogram, CountsWhatIsAtMostItsBound) {
  Histogram histogram;
  for (const double time : {0.0, 0.001, 0.0011, 59.0, 61.0}) histogram.add(time);
  const std::string text = histogram.text("x", "What.");
  EXPECT_THAT(text, HasSubstr("x_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("x_bucket{le=\"0.0025\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("x_bucket{le=\"60\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("x_bucket{le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("x_count 5\n"));
}

TEST_F(Served, TheLogTellsNumbersAndNoText) {
  std::mutex mutex;
  std::vector<std::string> lines;
  LlmServerOptions options;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  start(options);
  post("/v1/chat/completions", std::string(kChat) + R"(,"stream":true})");
  ask(port(), "GET", "/nothing?key=secret");
  server_.reset();  // all that was answered is logged
  ASSERT_EQ(lines.size(), 2u);
  // A line is written after its reply was sent, so the next request's line may come first.
  if (lines[0].find("/nothing") != std::string::npos) std::swap(lines[0], lines[1]);
  const JsonValue one = *parse_json(lines[0], "line"), two = *parse_json(lines[1], "line");
  EXPECT_EQ(one.find("path")->text(), "/v1/chat/completions");
  EXPECT_EQ(*one.find("status")->as_int("status"), 200);
  EXPECT_EQ(*one.find("written_tokens")->as_int("written_tokens"), 9);
  EXPECT_GT(*one.find("prompt_tokens")->as_int("prompt_tokens"), 3);
  EXPECT_EQ(*two.find("status")->as_int("status"), 404);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find("story"), std::string::npos) << line;
    EXPECT_EQ(line.find("secret"), std::string::npos) << line;
  }
}

TEST_F(Served, ARequestHasTheDefaultsOfTheServer) {
  LlmServerOptions options;
  options.service.defaults = R"({"temperature":0,"n_predict":5,"ignore_eos":true})";
  start(options);
  const std::string first = post("/completion", R"({"prompt":"Tom"})").body;
  const JsonValue json = *parse_json(first, "reply");
  EXPECT_EQ(*json.find("tokens_predicted")->as_int("tokens"), 5);
  EXPECT_EQ(*json.find("generation_settings")->find("temperature")->as_double("t"), 0.0);
  const Answer more = post("/completion", R"({"prompt":"Tom","n_predict":7})");
  EXPECT_EQ(*more.json().find("tokens_predicted")->as_int("tokens"), 7);
  EXPECT_THAT(more.json().find("content")->text(),
              testing::StartsWith(json.find("content")->text()));
  for (const char* bad : {"[]", "{", R"({"temperatur":1})", R"({"top_p":2})"}) {
    options.service.defaults = bad;
    EXPECT_FALSE(LlmServer::start(model_, options).ok()) << bad;
  }
}

TEST_F(Served, PartsCanBeLeftOut) {
  start();
  EXPECT_EQ(ask(port(), "GET", "/slots").json().elements().size(), 4u);
  LlmServerOptions options;
  options.without = {"slots", "metrics", "page"};
  start(options);
  EXPECT_EQ(ask(port(), "GET", "/slots").status, 501);
  EXPECT_EQ(ask(port(), "GET", "/metrics").status, 501);
  EXPECT_EQ(ask(port(), "GET", "/").status, 404);
  options.without = {"pages"};
  const Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().str(), HasSubstr("no part pages"));
}

TEST_F(Served, APromptIsTextsAndTokensInAnyOrder) {
  start();
  const JsonValue ids = post("/tokenize", R"({"content":"Tom saw","add_special":true})").json();
  const std::string tokens = dump_json(*ids.find("tokens"));
  const auto content = [&](const std::string& prompt) {
    const Answer answer =
        post("/completion", cat("{\"prompt\":", prompt, ",\"n_predict\":6,\"temperature\":0}"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    const JsonValue json = answer.json();
    return (json.is_array() ? json.elements().back() : json).find("content")->text();
  };
  const std::string expected = content("\"Tom saw\"");
  EXPECT_EQ(content(tokens), expected);
  EXPECT_EQ(content(R"({"prompt_string":"Tom saw"})"), expected);
  EXPECT_EQ(content(cat("[\"Tom\",", tokens, "]")), expected);
  EXPECT_EQ(content(cat("[", tokens, ",{\"prompt_string\":\"Tom saw\"}]")), expected);
  const std::string one = tokens.substr(1, tokens.find(',') - 1);
  EXPECT_EQ(post("/completion", cat("{\"n_predict\":1,\"prompt\":[", one, ",\" saw\",", one, "]}"))
                .status,
            200);
  EXPECT_EQ(
      post("/completion", R"({"prompt":{"prompt_string":"a","multimodal_data":["x"]}})").status,
      400);
}

TEST_F(Served, AClientGetsTheFieldsThatItAskedFor) {
  start();
  const Answer answer = post("/completion", R"({"prompt":"Tom","n_predict":3,
      "response_fields":["content","generation_settings/n_predict","prompt","nothing/x"]})");
  const JsonValue json = answer.json();
  EXPECT_EQ(json.members().size(), 3u) << answer.body;
  EXPECT_EQ(*json.find("generation_settings/n_predict")->as_int("n"), 3);
  EXPECT_THAT(json.find("prompt")->text(), HasSubstr("Tom"));
}

// Any number of clients at once get what each would get alone, streamed or whole.
TEST_F(Served, ManyClientsGetTheSameBytesAsEachAlone) {
  LlmServerOptions options;
  options.service.scheduler.sessions = 3;
  start(options);
  std::mt19937 random(21);
  const std::vector<Asked> requests = random_requests(random, model_, 40);
  std::vector<std::thread> clients;
  std::vector<std::string> texts(requests.size());
  for (size_t lane = 0; lane < 8; ++lane) {
    clients.emplace_back([&, lane] {
      for (size_t i = lane; i < requests.size(); i += 8) {
        const Asked& a = requests[i];
        const SamplerOptions& s = a.options.sampler;
        JsonValue body = JsonValue::object();
        JsonValue prompt = JsonValue::array();
        for (const TokenId id : a.prompt) prompt.push(JsonValue::integer(id));
        body.add("prompt", std::move(prompt));
        body.add("seed", JsonValue::integer(static_cast<int64_t>(s.seed)));
        body.add("temperature", JsonValue::real(static_cast<double>(s.temperature)));
        body.add("top_k", JsonValue::integer(s.top_k));
        body.add("repetition_penalty", JsonValue::real(static_cast<double>(s.repetition_penalty)));
        body.add("max_tokens", JsonValue::integer(a.options.max_tokens));
        if (!a.options.stop.empty()) body.add("stop", JsonValue::string(a.options.stop[0]));
        body.add("stream", JsonValue::boolean(i % 2 == 0));
        add_members(body, "ignore_eos", a.options.ignore_eos, "context_shift",
                    a.options.shift_context, "n_keep", a.options.keep_tokens, "n_discard",
                    a.options.shift_tokens);
        const Answer answer = post("/v1/completions", dump_json(body));
        texts[i] = i % 2 == 0 ? joined(answer.body, "", "text")
                              : answer.json().find("choices")->elements()[0].find("text")->text();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(texts[i], alone(model_, requests[i]).text) << i;
}

}  // namespace
}  // namespace loom::core::test
