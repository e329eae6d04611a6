// Cost limits of requests: texts that cannot fit are refused before they are tokenized, memory is
// charged to the budget, and large requests do not delay small ones.
#include <gmock/gmock.h>

#include <memory>
#include <mutex>
#include <thread>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Limits : public testing::Test {
 protected:
  void start(std::optional<Engine> memory = {}) { start(model_, std::move(memory)); }
  void start(const Model& model, std::optional<Engine> memory) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.scheduler.session.context = 128;
    options.http.memory = std::move(memory);
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(server_->port(), "POST", path, body);
  }

  std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  const Model model_ = stories();
  std::unique_ptr<LlmServer> server_;
};

struct LargeText {
  const char* path;
  const char* before;  // of the text, in the body
  const char* after;
  const char* error;  // in the reply, as the dialect of the route has it
};

const LargeText kLargeTexts[] = {
    {"/v1/completions", R"({"prompt":")", R"("})", R"("type":"invalid_request_error")"},
    {"/v1/completions", R"({"prompt":["a",")", R"("]})", R"("type":"invalid_request_error")"},
    {"/completion", R"({"prompt":")", R"("})", R"("type":"invalid_request_error")"},
    {"/infill", R"({"input_prefix":")", R"(","input_suffix":"a"})", R"("error")"},
    {"/v1/chat/completions", R"({"messages":[{"role":"user","content":")", R"("}]})",
     R"("type":"invalid_request_error")"},
    {"/v1/responses", R"({"input":")", R"("})", R"("type":"invalid_request_error")"},
    {"/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":")", R"("}]})",
     R"({"type":"error","error":{"type":"request_too_large")"},
    {"/api/generate", R"({"prompt":")", R"("})", R"({"error":"a text has 16000000 bytes)"},
    {"/api/chat", R"({"messages":[{"role":"user","content":")", R"("}]})",
     R"({"error":"a text has 16000000 bytes)"},
    {"/tokenize", R"({"content":")", R"("})", R"("type":"invalid_request_error")"},
    {"/v1/embeddings", R"({"input":")", R"("})", R"("type":"invalid_request_error")"},
    {"/api/embed", R"({"input":")", R"("})", R"({"error":"a text has 16000000 bytes)"},
};

TEST_F(Limits, ATextThatCannotFitIsRefusedInTheDialectOfItsRoute) {
  start();
  const std::string text(16'000'000, '7');
  for (const LargeText& one : kLargeTexts) {
    const Answer answer = post(one.path, cat(one.before, text, one.after));
    const bool no_infill = std::string_view(one.path) == "/infill";  // refused before
    EXPECT_EQ(answer.status, no_infill ? 400 : 413) << one.path << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(one.error)) << one.path;
  }
}

TEST_F(Limits, ABodyThatIsTooLargeIsRefusedInTheDialectOfItsRoute) {
  start();
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [path, error] :
       {Pair("/v1/completions", R"({"error":{"message":"a body may have)"),
        Pair("/v1/messages", R"({"type":"error","error":{"type":"request_too_large")"),
        Pair("/api/chat", R"({"error":"a body may have)")}) {
    Socket socket(server_->port());
    socket.send(cat("POST ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\n",
                    "Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"));
    const Answer answer = parsed(socket.receive_all());
    EXPECT_EQ(answer.status, 413);
    EXPECT_THAT(answer.body, HasSubstr(error));
  }
}

// The text of a prompt is tokenized on another thread. Both replies come; the small one first.
TEST_F(Limits, ASmallRequestDoesNotWaitForALargeOne) {
  start();
  std::atomic<bool> large_is_done = false;
  std::thread large([&] {
    const Answer answer =
        post("/tokenize", cat(R"({"content":")", std::string(1'000'000, '7'), "\"}"));
    large_is_done = true;
    EXPECT_EQ(answer.status, 200);
  });
  EXPECT_TRUE(wait_until([&] { return large_is_done || server_->busy_with_large(); }));
  const Answer small = post("/v1/completions", R"({"prompt":"a","max_tokens":1})");
  EXPECT_EQ(small.status, 200) << small.body;
  EXPECT_FALSE(large_is_done);
  large.join();
}

// Counts the polls of its client, which disconnects eventually.
class LeavingReply final : public HttpReply {
 public:
  explicit LeavingReply(size_t leaves) : leaves_(leaves) {}
  void send(int, HttpHeaders, std::string) override {}
  void begin(int, HttpHeaders) override {}
  void write(std::string) override {}
  void end() override {}
  bool gone() const override { return ++asked >= leaves_; }
  mutable size_t asked = 0;

 private:
  const size_t leaves_;
};

TEST_F(Limits, ATextWhoseClientIsGoneIsTokenizedNoFurther) {
  start();
  const Service& service = server_->service();
  const std::string text(100'000, '7');
  const LeavingReply patient(SIZE_MAX);
  ASSERT_TRUE(service.encode(text, patient, {}).ok());
  ASSERT_GE(patient.asked, 20u);
  for (const size_t leaves : {size_t{1}, size_t{7}, patient.asked}) {
    const LeavingReply reply(leaves);
    const auto ids = service.encode(text, reply, {});
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().code, Code::cancelled);
    EXPECT_EQ(reply.asked, leaves);
  }
}

// The worker is free before the text has all its tokens, so the reply is a short error.
TEST_F(Limits, AHangUpOrTheEndOfTheServerEndsTokenizing) {
  start();
  const std::string body = cat(R"({"content":")", std::string(1'000'000, '7'), "\"}");
  const auto post_large = [&](Socket& socket) {
    socket.send(
        cat("POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
            "application/json\r\nContent-Length: ",
            body.size(), "\r\n\r\n", body));
    EXPECT_TRUE(wait_until([&] { return server_->busy_with_large() || !log().empty(); }));
  };
  {
    Socket socket(server_->port());
    post_large(socket);
  }
  ASSERT_TRUE(wait_until([&] { return !log().empty(); }));
  const JsonValue line = *parse_json(log().front(), "the log");
  EXPECT_EQ(line.find("status")->as_int("status").value_or(0), 499) << log().front();
  const JsonValue* bytes = line.find("bytes");
  EXPECT_TRUE(bytes == nullptr || bytes->as_int("bytes").value_or(1 << 20) < 1000) << log().front();
  {
    const std::lock_guard lock(mutex_);
    log_.clear();
  }
  Socket socket(server_->port());
  post_large(socket);
  server_.reset();
  const Answer answer = parsed(socket.receive_all());
  EXPECT_EQ(answer.status, 503) << answer.body.substr(0, 200);
  EXPECT_THAT(answer.body, HasSubstr("the server stops"));
}

// It is compiled by a worker, before its texts wait: one that is wrong never gets to the thread
// that writes texts.
TEST_F(Limits, WhatHoldsATextIsCompiledBeforeTheTextWaits) {
  start();
  for (const char* body : {R"({"prompt":"a","json_schema":{"not":{}}})",
                           R"({"prompt":"a","grammar":"root ::= missing"})"}) {
    const Answer answer = post("/completion", body);
    EXPECT_EQ(answer.status, 400) << answer.body;
  }
  const SchedulerCounts counts = server_->service().scheduler().counts();
  EXPECT_EQ(counts.texts, 0);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(
      post("/completion", R"({"prompt":"a","n_predict":2,"json_schema":{"enum":[1]}})").status,
      200);
}

// A schema with that many nested properties takes much longer than a token.
std::string slow_schema(size_t bytes) {
  std::string out = R"({"type":"object","properties":{)";
  for (size_t i = 0; out.size() < bytes; ++i)
    out += cat(i == 0 ? "" : ",", R"("p)", i, R"(":{"type":["string","array"],"items":{"enum":[)",
               i, R"(,true]}})");
  return out + "}}";
}

TEST_F(Limits, AStreamGoesOnWhileSchemasAreCompiled) {
  start();
  Socket stream(server_->port());
  const auto send = [](const Socket& socket, std::string_view body) {
    socket.send(cat("POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n",
                    "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n",
                    body));
  };
  send(stream, R"({"prompt":"Once","stream":true,"n_predict":1000000,"ignore_eos":true,)"
               R"("context_shift":true})");
  ASSERT_THAT(stream.receive(), HasSubstr("200 OK"));
  constexpr size_t kSchemas = 8, kPasses = 20;
  const std::string body =
      cat(R"({"prompt":"a","n_predict":1,"json_schema":)", slow_schema(100'000), "}");
  std::vector<std::unique_ptr<Socket>> slow;
  for (size_t i = 0; i < kSchemas; ++i) {
    slow.push_back(std::make_unique<Socket>(server_->port()));
    send(*slow.back(), body);
  }
  ASSERT_TRUE(wait_until([&] { return server_->busy_with_large() || !log().empty(); }));
  size_t passes = 0;
  const int64_t begin = server_->service().scheduler().counts().passes;
  while (passes < kPasses && log().size() < kSchemas) {
    if (stream.receive().empty()) break;
    passes = static_cast<size_t>(server_->service().scheduler().counts().passes - begin);
  }
  EXPECT_GE(passes, kPasses);
  EXPECT_LT(log().size(), kSchemas) << "the stream waited for the schemas";
  for (const auto& socket : slow) EXPECT_EQ(parsed(socket->receive_all()).status, 200);
}

// Its size is bounded and charged.
TEST_F(Limits, WhatHoldsATextIsBoundedAndCharged) {
  const auto with = [&](size_t bytes) {
    return post("/v1/completions", cat(R"({"prompt":"a","max_tokens":1,"json_schema":{"enum":[")",
                                       std::string(bytes, 'a'), R"("]}})"));
  };
  start();
  EXPECT_EQ(with(20'000).status, 200);
  const Answer large = with(200'000);
  EXPECT_EQ(large.status, 400) << large.body;
  EXPECT_THAT(large.body, HasSubstr("may have 131072 bytes"));
  const Result<Engine> engine = Engine::create({.threads = 1, .memory_limit = 12 << 20});
  ASSERT_TRUE(engine.ok());
  const Result<Model> model = Model::load(*engine, loom_test::source_path("models/stories.entity"));
  ASSERT_TRUE(model.ok()) << model.error().str();
  start(*model, {});
  const Answer charged = with(20'000);
  EXPECT_EQ(charged.status, 503) << charged.body;
  EXPECT_EQ(with(1000).status, 200) << "what was charged is given back";
}

TEST_F(Limits, MemoryOfRequestsIsChargedToTheBudget) {
  Result<Engine> engine = Engine::create({.threads = 1, .memory_limit = 12 << 20});
  ASSERT_TRUE(engine.ok());
  start(*engine);
  const std::string body = cat(R"({"prompt":")", std::string(3'000'000, '7'), "\"}");
  EXPECT_EQ(post("/v1/completions", body).status, 413);
  const Answer values =
      post("/v1/messages", cat(R"({"max_tokens":1,"messages":[)", std::string(400'000, ' '), "1",
                               [] {
                                 std::string all;
                                 for (int i = 0; i < 300'000; ++i) all += ",1";
                                 return all;
                               }(),
                               "]}"));
  EXPECT_EQ(values.status, 503) << values.body;
  EXPECT_THAT(values.body, HasSubstr("--memory"));
  EXPECT_THAT(values.body, HasSubstr(R"("type":"overloaded_error")"));
  const std::string large(9'000'000, ' ');
  EXPECT_EQ(post("/api/chat", large).status, 503);
  // The memory was released each time.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(post("/v1/completions", body).status, 413);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","max_tokens":1})").status, 200);
}

}  // namespace
}  // namespace loom::core::test
