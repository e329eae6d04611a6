// What a request may cost: texts that cannot fit are refused before they are tokenized, memory is
// charged to the budget, and large requests do not hold up small ones.
#include <gmock/gmock.h>

#include <thread>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Limits : public testing::Test {
 protected:
  void start(MemoryBudget memory = {}) { start(model_, std::move(memory)); }
  void start(const Model& model, MemoryBudget memory) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.scheduler.session.context = 128;
    options.http.memory = std::move(memory);
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(server_->port(), "POST", path, body);
  }

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

// The text of a prompt is tokenized beside it. Both answers come; the small one first.
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

// It is compiled by the thread that writes all texts, so its size is bounded and charged.
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
  start(MemoryBudget(12 << 20));
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
  // It was given back each time.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(post("/v1/completions", body).status, 413);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","max_tokens":1})").status, 200);
}

}  // namespace
}  // namespace loom::core::test
