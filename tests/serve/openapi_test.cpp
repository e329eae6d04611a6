// The document of the routes: it lists what is served, with the accepted types of the fields.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

TEST(OpenApi, NamesRoutesAndWhatTheirFieldsTake) {
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stories";
  options.service.version = "test";
  options.service.scheduler.session.context = 64;
  const auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok());
  const Answer answer = ask((*server)->port(), "GET", "/openapi.json");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, LlmServer::openapi(options));
  const JsonValue document = answer.json();
  EXPECT_EQ(document.find("openapi")->text(), "3.1.0");
  const JsonValue& paths = *document.find("paths");
  for (const char* path : {"/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat",
                           "/api/embed", "/completion", "/rerank", "/v1/models/{name}", "/metrics"})
    EXPECT_NE(paths.find(path), nullptr) << path;
  const auto field = [&](const char* path, const char* name) {
    const JsonValue& schema = *paths.find(path)
                                   ->find("post")
                                   ->find("requestBody")
                                   ->find("content")
                                   ->find("application/json")
                                   ->find("schema");
    return dump_json(*schema.find("properties")->find(name));
  };
  EXPECT_EQ(field("/v1/chat/completions", "temperature"),
            R"({"type":["null","integer","number"]})");
  EXPECT_EQ(field("/v1/chat/completions", "stream"), R"({"type":["null","boolean"]})");
  EXPECT_EQ(field("/v1/messages", "max_tokens"), R"({"type":["null","integer"]})");
  EXPECT_EQ(field("/api/chat", "stream"), R"({"type":["null","boolean"]})");
  EXPECT_EQ(field("/completion", "stop"), R"({"type":["null","string","array"]})");
  EXPECT_EQ(field("/v1/embeddings", "encoding_format"), R"({"type":["null","string"]})");
}

}  // namespace
}  // namespace loom::core::test
