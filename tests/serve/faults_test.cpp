// Failing allocations of the server, one after the other: the request gets 503, the process
// survives, and later replies have the same text as before. With the environment variable
// LOOM_FAULTS=all every allocation of every kind of request is tried, and 1,000 of requests that
// make more (the OpenAPI document). Without it a sample is tried.
#include <gmock/gmock.h>

#include <cstdlib>

#include "client.hpp"
#include "failing_new.hpp"
#include "request_kinds.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

// The strings of a reply with the model's text.
void add_texts(const JsonValue& value, std::string& to) {
  for (const auto& [key, one] : value.members()) {
    const bool text = key == "content" || key == "text" || key == "response" || key == "delta";
    if (text && one.is_string()) to += cat("|", one.text());
    add_texts(one, to);
  }
  for (const JsonValue& one : value.elements()) add_texts(one, to);
}
std::string texts_of(const Answer& answer) {
  std::string out;
  const std::string& body = answer.body;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    std::string_view line = std::string_view(body).substr(at, end - at);
    at = end + 1;
    if (line.starts_with("data: ")) line.remove_prefix(6);
    const Result<JsonValue> json = parse_json(line, "line");
    if (json.ok()) add_texts(*json, out);
  }
  return out;
}
bool ended_early(const std::string& all, const Answer& answer) {
  const bool cut = answer.has("Transfer-Encoding: chunked") && !all.ends_with("0\r\n\r\n");
  return cut || answer.body.find("\"error\"") != std::string::npos ||
         answer.body.find("event: error") != std::string::npos;
}

class Faults : public testing::TestWithParam<size_t> {
 protected:
  Faults() {
    is_test = true;
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.scheduler.session.context = 128;
    options.service.resume.seconds = 1;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(stories(), options);
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  // Fails the n-th allocation after the connection is established; 0 means none.
  std::pair<std::string, Answer> send(const Kind& kind, int64_t n = 0) const {
    const std::string_view body = kind.body;
    Socket socket(server_->port());
    socket.send("GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    EXPECT_THAT(socket.receive(), testing::HasSubstr("200 OK"));
    allocations = 0;
    countdown = n;
    socket.send(cat(kind.method, " ", kind.path, " HTTP/1.1\r\nHost: 127.0.0.1\r\n",
                    "Connection: close\r\nContent-Type: application/json\r\nContent-Length: ",
                    body.size(), "\r\n\r\n", body));
    std::string all = socket.receive_all();
    countdown = 0;
    Answer answer = parsed(all);
    return {std::move(all), std::move(answer)};
  }
  std::unique_ptr<LlmServer> server_;
};

TEST_P(Faults, OfAnyAllocationAnswer503AndLeaveTheServerAlive) {
  const Kind& kind = kKinds[GetParam()];
  send(kind);
  const Answer clean = send(kind).second;
  const std::string texts = texts_of(clean);
  const int64_t count = allocations;
  const char* const all = std::getenv("LOOM_FAULTS");
  const bool every = all != nullptr && std::string_view(all) == "all";
  const int64_t step = std::max<int64_t>(count / (every ? 1000 : 40), 1);
  for (int64_t n = 1; n <= count + 5; n += step) {
    const auto [bytes, answer] = send(kind, n);
    SCOPED_TRACE(cat(kind.path, " ", kind.body, ": allocation ", n, " of ", count));
    if (answer.status == clean.status) {
      const bool whole_text = clean.status != 200 || !ended_early(bytes, answer);
      EXPECT_EQ(whole_text ? texts_of(answer) : texts, texts);
    } else {
      EXPECT_EQ(answer.status, 503) << bytes;
    }
    const auto [again, after] = send(kind);
    ASSERT_EQ(after.status, clean.status) << again;
    ASSERT_EQ(texts_of(after), texts);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults, testing::Range<size_t>(0, std::size(kKinds)));

}  // namespace
}  // namespace loom::core::test
