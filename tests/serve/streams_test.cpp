// Resumed streams: a client that loses its connection reads the rest with the same bytes, in any
// pieces. Storage is bounded in number, bytes and time.
#include "serve/streams.hpp"

#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "client.hpp"
#include "serve/server.hpp"
#include "set_clock.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Resumed : public testing::Test {
 protected:
  void start(const std::function<void(LlmServerOptions&)>& change = {}) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.version = "test";
    options.service.scheduler.session.context = 128;
    options.service.scheduler.sessions = 2;
    if (change) change(options);
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  uint16_t port() const { return server_->port(); }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(port(), "POST", path, body);
  }
  Answer resume(std::string_view id, std::string_view headers = "",
                std::string_view query = "") const {
    return ask(port(), "GET", cat("/v1/streams/", id, query), {}, headers);
  }
  static std::string request(std::string_view path, std::string_view body) {
    return cat("POST ", path,
               " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
               "Content-Length: ",
               body.size(), "\r\n\r\n", body);
  }
  void wait_until_idle() const {
    EXPECT_TRUE(wait_until([&] { return server_->models().counts().running == 0; }));
  }

  const Model model_ = stories();
  std::unique_ptr<LlmServer> server_;
};

// The id of a stream and the number of its last complete event.
std::pair<std::string, int64_t> last_event(const std::string& stream) {
  const size_t whole = stream.rfind("\n\n");
  if (whole == std::string::npos) return {"", -1};
  const size_t at = stream.rfind("id: ", whole);
  if (at == std::string::npos) return {"", -1};
  const std::string line = stream.substr(at + 4, stream.find('\n', at) - at - 4);
  const size_t colon = line.rfind(':');
  return {line.substr(0, colon), std::atoll(line.c_str() + colon + 1)};
}

// Events without their numbers, and without what differs from request to request.
std::string plain(const std::string& stream) {
  std::string out;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = std::min(stream.find('\n', at), stream.size() - 1) + 1;
    const std::string line = stream.substr(at, end - at);
    at = end;
    if (line.starts_with("id: ")) continue;
    Result<JsonValue> json = parse_json(line.substr(std::min<size_t>(line.size(), 6)), "event");
    const JsonValue* text = json.ok() ? json->find("content") : nullptr;
    const JsonValue* choices = json.ok() ? json->find("choices") : nullptr;
    if (text != nullptr) out += text->text();
    if (choices != nullptr && !choices->elements().empty()) {
      const JsonValue& choice = choices->elements().front();
      const JsonValue* delta = choice.find("delta");
      const JsonValue* more = delta != nullptr ? delta->find("content") : choice.find("text");
      if (more != nullptr) out += more->text();
    }
  }
  return out;
}

constexpr const char* kBody =
    R"({"messages":[{"role":"user","content":"Tell me a story."}],"seed":3,"max_tokens":60,
        "ignore_eos":true,"stream":true)";

TEST_F(Resumed, HaveTheBytesOfOneThatWasNeverLost) {
  start();
  const std::string expected = plain(post("/v1/chat/completions", cat(kBody, "}")).body);
  ASSERT_GT(expected.size(), 100u);
  std::mt19937 random(5);
  const char* setting = std::getenv("LOOM_STREAM_CASES");
  for (int round = setting != nullptr ? std::atoi(setting) : 40; round > 0; --round) {
    // A client that goes away after some bytes, and again and again while it reads the rest.
    std::string got, raw;
    {
      Socket socket(port());
      socket.send(request("/v1/chat/completions", cat(kBody, R"(,"resumable":true})")));
      const size_t enough = random() % 6000;
      do raw += socket.receive();
      while (raw.find("data: ") == std::string::npos || raw.size() < enough);
    }
    const size_t head = raw.find("\r\n\r\n");
    ASSERT_THAT(raw.substr(0, head), HasSubstr("X-Stream-Id: chatcmpl-"));
    const auto complete = [](std::string stream) {
      const size_t end = stream.rfind("\n\n");
      return end == std::string::npos ? std::string() : stream.substr(0, end + 2);
    };
    got = complete(unchunked(raw.substr(head + 4)));
    const std::string id = [&] {
      const size_t at = raw.find("X-Stream-Id: ") + 13;
      return raw.substr(at, raw.find('\r', at) - at);
    }();
    while (got.find("[DONE]") == std::string::npos) {
      const int64_t after = last_event(got).second;
      if (random() % 3 == 0) {
        got += complete(
            resume(id, after < 0 ? "" : cat("Last-Event-ID: ", id, ":", after, "\r\n")).body);
        continue;
      }
      Socket socket(port());
      socket.send(
          cat("GET /v1/streams/", id, "?after=", after, " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
      std::string part = socket.receive();
      for (size_t enough = random() % 3000; part.size() < enough && !socket.ended();) {
        const std::string more = socket.receive(200);  // any amount will do
        if (more.empty()) break;
        part += more;
      }
      const size_t start_of = part.find("\r\n\r\n");
      if (start_of != std::string::npos) got += complete(unchunked(part.substr(start_of + 4)));
    }
    EXPECT_EQ(plain(got), expected);
    int64_t number = 0;
    for (size_t at = got.find("id: "); at != std::string::npos; at = got.find("\nid: ", at + 1)) {
      const size_t colon = got.find(':', got.find("chatcmpl-", at));
      ASSERT_EQ(std::atoll(got.c_str() + colon + 1), number++);
    }
  }
}

TEST_F(Resumed, AreThoseOfEveryDialectWithEvents) {
  start();
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/messages", kBody},
      {"/completion", R"({"prompt":"Once","seed":3,"n_predict":20,"stream":true)"},
      {"/v1/completions", R"({"prompt":"Once","seed":3,"max_tokens":20,"stream":true)"},
      {"/v1/responses", R"({"input":"A story.","seed":3,"max_output_tokens":20,"stream":true)"}};
  for (const auto& [path, body] : cases) {
    const Answer answer = post(path, cat(body, R"(,"resumable":true})"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto [id, last] = last_event(answer.body);
    ASSERT_GT(last, 3) << path;
    EXPECT_EQ(resume(id).body, answer.body) << path;
    const Answer rest = resume(id, "", "?after=2");
    EXPECT_TRUE(answer.body.ends_with(rest.body));
    EXPECT_TRUE(rest.body.starts_with(cat("id: ", id, ":3\n"))) << rest.body;
    EXPECT_TRUE(rest.has("Content-Type: text/event-stream"));
    // Without it nothing has a number.
    EXPECT_EQ(post(path, cat(body, "}")).body.find("id: "), std::string::npos);
    if (std::string_view(path) != "/v1/responses") continue;
    EXPECT_EQ(ask(port(), "GET", cat("/v1/responses/", id, "?stream=true&starting_after=2")).body,
              rest.body);
    EXPECT_THAT(rest.body.substr(0, 400), HasSubstr("\"sequence_number\":3"));
    EXPECT_EQ(ask(port(), "GET", cat("/v1/responses/", id)).status, 400);
  }
}

TEST_F(Resumed, AreToldWhereThereAreNone) {
  start();
  const Answer answer = post("/completion", R"({"prompt":"Once","n_predict":3,"stream":true,
                                                "resumable":true})");
  const auto [id, last] = last_event(answer.body);
  EXPECT_EQ(resume("stream_none").status, 404);
  EXPECT_EQ(resume(id, "", cat("?after=", last + 1)).status, 400);
  EXPECT_EQ(resume(id, "", cat("?after=", last)).status, 200);
  for (const char* bad : {"?after=-2", "?after=x", "?after=1x", "?after=99999999999999999999"})
    EXPECT_EQ(resume(id, "", bad).status, 400) << bad;
  EXPECT_EQ(ask(port(), "DELETE", "/v1/streams/none").status, 404);
  EXPECT_EQ(ask(port(), "DELETE", cat("/v1/streams/", id)).status, 200);
  EXPECT_EQ(resume(id).status, 404);
  // Nothing is stored for requests that do not stream, nor if the server stores none.
  EXPECT_EQ(post("/completion", R"({"prompt":"a","n_predict":1,"resumable":true})").status, 200);
  start([](LlmServerOptions& options) { options.service.resume.seconds = 0; });
  EXPECT_THAT(post("/completion", R"({"prompt":"a","stream":true,"resumable":true})").body,
              HasSubstr("this server keeps no streams"));
}

TEST_F(Resumed, EndWhenTheyAreStopped) {
  start([](LlmServerOptions& options) { options.service.scheduler.session.context = 512; });
  Socket socket(port());
  socket.send(request("/completion", R"({"prompt":"Once","n_predict":20000,"ignore_eos":true,
        "context_shift":true,
                                         "stream":true,"resumable":true})"));
  std::string head = socket.receive();
  while (head.find("\r\n\r\n") == std::string::npos) head += socket.receive();
  const size_t at = head.find("X-Stream-Id: ") + 13;
  const std::string id = head.substr(at, head.find('\r', at) - at);
  EXPECT_EQ(ask(port(), "DELETE", cat("/v1/streams/", id)).status, 200);
  wait_until_idle();
  EXPECT_EQ(server_->models().counts().cancelled, 1);
  EXPECT_THAT(socket.receive_all(), testing::EndsWith("0\r\n\r\n"));
}

TEST_F(Resumed, AreForgottenInTime) {
  const SetClock clock;
  start([&](LlmServerOptions& options) {
    options.service.clock = clock.clock();
    options.service.resume.seconds = 600;
    options.service.scheduler.session.context = 512;
  });
  const auto [id, last] = last_event(
      post("/completion", R"({"prompt":"a","n_predict":2,"stream":true,"resumable":true})").body);
  EXPECT_EQ(resume(id).status, 200);
  {  // one whose client goes: its text ends when the time is over
    Socket socket(port());
    socket.send(request("/completion", R"({"prompt":"Once","n_predict":20000,"ignore_eos":true,
        "context_shift":true,"stream":true,"resumable":true})"));
    socket.receive();
  }
  EXPECT_EQ(resume(id).status, 200);
  // The time of a stream begins when the server has let go of its reader, which may be later than
  // the end of the reply.
  EXPECT_TRUE(wait_until([&] {
    clock.advance(601);
    return resume(id).status == 404;
  }));
  EXPECT_TRUE(wait_until([&] {
    clock.advance(601);
    return server_->models().counts().running == 0;
  }));
}

// A reader of a stream that records the output.
class Received final : public HttpReply {
 public:
  void send(int status, HttpHeaders, std::string) override { sent = status; }
  void begin(int, HttpHeaders) override { begun = true; }
  void write(std::string piece) override { text += piece; }
  void end() override { ended = true; }
  bool gone() const override { return left; }
  std::string text;
  bool begun = false, ended = false, left = false;
  int sent = 0;
};

TEST(KeptStreams, AreBoundedInNumberAndBytes) {
  Streams streams({.seconds = 60, .streams = 2, .bytes = 1000});
  const auto received = std::make_shared<Received>();
  std::shared_ptr<HttpReply> a = streams.keep("a", received), b = streams.keep("b", received);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(streams.keep("c", received), nullptr);
  b->begin(200, {});
  b->end();
  const std::shared_ptr<HttpReply> c = streams.keep("c", received);
  ASSERT_NE(c, nullptr) << "the place of one that has ended";
  EXPECT_FALSE(streams.resume("b", -1, received).ok());

  a->begin(200, {});
  const std::string event = cat("data: ", std::string(90, 'x'), "\n\n");
  for (int i = 0; i < 30; ++i) a->write(event);
  EXPECT_FALSE(a->gone()) << "a reader is there, and has what is not kept";
  const auto later = std::make_shared<Received>();
  EXPECT_THAT(streams.resume("a", -1, later).error().message, HasSubstr("no longer kept"));
  EXPECT_TRUE(streams.resume("a", 25, later).ok());
  EXPECT_TRUE(received->ended) << "who read before reads no more";
  EXPECT_EQ(last_event(later->text), std::pair(std::string("a"), int64_t{29}));
  a->write(event);
  EXPECT_EQ(last_event(later->text), std::pair(std::string("a"), int64_t{30}));
  // Without a reader nothing may be lost: the text ends when the storage is full.
  later->left = true;
  const auto again = std::make_shared<Received>();
  EXPECT_FALSE(a->gone());
  for (int i = 0; i < 3; ++i) a->write(event);
  EXPECT_TRUE(a->gone());
  EXPECT_TRUE(streams.resume("a", 30, again).ok());
  EXPECT_EQ(last_event(again->text), std::pair(std::string("a"), int64_t{33}));
}

TEST(KeptStreams, NumberEveryEventOfAPiece) {
  Streams streams({});
  const auto received = std::make_shared<Received>();
  const std::shared_ptr<HttpReply> one = streams.keep("s", received);
  one->begin(200, {});
  one->write("");
  one->write("event: a\ndata: {}\n\nevent: b\ndata: {}\n\n");
  one->write("data: [DONE]\n\n");
  one->end();
  EXPECT_EQ(received->text,
            "id: s:0\nevent: a\ndata: {}\n\nid: s:1\nevent: b\ndata: {}\n\n"
            "id: s:2\ndata: [DONE]\n\n");
}

}  // namespace
}  // namespace loom::core::test
