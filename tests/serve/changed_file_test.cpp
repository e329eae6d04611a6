// A model file that another program changes while it is served: errors, and never text of other
// bytes. A file that is replaced by a rename is another file.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <vector>

#include "client.hpp"
#include "io/io_testing.hpp"
#include "serve/server.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kChanged = "was changed in place while it is served";

enum class Change { cut, overwritten, replaced };

void change(const fs::path& model, Change how) {
  const fs::path other = model.string() + ".new";
  switch (how) {
    case Change::cut: fs::resize_file(model, 0); break;
    case Change::overwritten: {  // as cp does it
      std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(fs::file_size(model) / 4));
      file << std::string(fs::file_size(model) / 2, 'x');
      break;
    }
    case Change::replaced:
      fs::copy_file(model, other);
      fs::rename(other, model);
      break;
  }
}

// A server with a model in a separate file. Its texts end only at their token limit.
class ServedFile {
 public:
  ServedFile() {
    path_ = folder_.path("model.entity");
    fs::copy_file(loom_test::source_path("models/stories.entity"), path_);
    // A change in the same tick of the clock would have the same time.
    fs::last_write_time(path_, fs::last_write_time(path_) - std::chrono::hours(1));
    const Engine engine = Engine::create({.threads = 1}).or_exit();
    LlmServerOptions options;
    options.port = 0;
    options.service.scheduler.session.context = 64;
    options.service.context_shift = true;
    options.service.defaults = R"({"ignore_eos":true,"temperature":0})";
    server_ = LlmServer::start(Model::load(engine, path_.string()).or_exit(), options).or_exit();
  }
  void change(Change how) const { test::change(path_, how); }
  LlmServer& server() const { return *server_; }
  Answer post(std::string_view route, std::string_view body) const {
    return ask(server_->port(), "POST", route, body);
  }
  // Sends a request whose reply is read later.
  std::unique_ptr<Socket> begin(std::string_view route, std::string_view body) const {
    auto socket = std::make_unique<Socket>(server_->port());
    socket->send(cat("POST ", route, " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n",
                     "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n",
                     body));
    return socket;
  }

 private:
  const TemporaryFolder folder_;
  fs::path path_;
  std::unique_ptr<LlmServer> server_;
};

TEST(ChangedFile, IsAnErrorOfEachRequestAndTheServerLives) {
  for (const Change how : {Change::cut, Change::overwritten, Change::replaced}) {
    SCOPED_TRACE(static_cast<int>(how));
    const ServedFile file;
    constexpr std::string_view kText = R"({"prompt":"Once","max_tokens":2,"temperature":0})";
    EXPECT_EQ(file.post("/v1/completions", kText).status, 200);
    file.change(how);
    const Answer answer = file.post("/v1/completions", kText);
    EXPECT_EQ(answer.status, how == Change::replaced ? 200 : 500) << answer.body;
    if (how != Change::replaced) {
      EXPECT_THAT(answer.body, HasSubstr(kChanged));
      const Answer ollama = file.post("/api/generate", R"({"prompt":"Once","stream":false})");
      EXPECT_EQ(ollama.status, 500);
      EXPECT_THAT(ollama.body, HasSubstr(R"({"error":")"));
    }
    EXPECT_EQ(ask(file.server().port(), "GET", "/health", "").status, 200);
  }
}

struct Streaming {
  const char* route;
  const char* body;        // up to the number of tokens
  const char* body_end;    // after it
  const char* text;        // the field of an event with its text
  const char* error;       // how the last event begins
  const char* whole_text;  // content of the last event of a complete text
};

const Streaming kStreams[] = {
    {"/v1/completions", R"({"prompt":"Once","stream":true,"temperature":0,"max_tokens":)", "}",
     "text", R"(data: {"error":{"message":)", "[DONE]"},
    {"/completion", R"({"prompt":"Once","stream":true,"n_predict":)", "}", "content",
     R"(data: {"error":{"message":)", R"("stop":true)"},
    {"/api/generate", R"({"raw":true,"prompt":"Once","options":{"num_predict":)", "}}", "response",
     R"({"error":")", R"("done":true)"},
};

// The text of a stream, and its last line.
std::pair<std::string, std::string> read_stream(const Streaming& one, std::string_view events) {
  std::string text, last;
  for (size_t at = 0; at < events.size();) {
    const size_t end = std::min(events.find('\n', at), events.size());
    std::string_view line = events.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    last = line;
    if (line.starts_with("data: ")) line.remove_prefix(6);
    const Result<JsonValue> event = parse_json(line, "an event");
    if (!event.ok()) continue;
    const JsonValue* choices = event->find("choices");
    const bool nested = choices != nullptr && !choices->elements().empty();
    const JsonValue* piece = (nested ? choices->elements()[0] : *event).find(one.text);
    if (piece != nullptr) text += piece->text();
  }
  return {text, last};
}

TEST(ChangedFile, EndsStreamsWithAnErrorAndWithoutATextOfOtherBytes) {
  for (const Change how : {Change::cut, Change::overwritten}) {
    for (const Streaming& one : kStreams) {
      SCOPED_TRACE(cat(one.route, " ", static_cast<int>(how)));
      const ServedFile file;
      const auto body = [&](int64_t tokens) { return cat(one.body, tokens, one.body_end); };
      const auto [right, good_end] = read_stream(one, file.post(one.route, body(300)).body);
      ASSERT_GT(right.size(), 300u);
      ASSERT_THAT(good_end, HasSubstr(one.whole_text));
      const auto socket = file.begin(one.route, body(1'000'000));
      std::string all;
      while (all.find(cat('"', one.text, '"')) == std::string::npos) {
        const std::string piece = socket->receive();
        ASSERT_FALSE(piece.empty()) << all;
        all += piece;
      }
      file.change(how);
      all += socket->receive_all();
      EXPECT_TRUE(all.ends_with("0\r\n\r\n")) << "the error is the whole end";
      const Answer answer = parsed(all);
      EXPECT_EQ(answer.status, 200);
      const auto [text, last] = read_stream(one, answer.body);
      EXPECT_THAT(last, StartsWith(one.error));
      EXPECT_THAT(last, HasSubstr(kChanged));
      EXPECT_THAT(answer.body, Not(HasSubstr(one.whole_text)));
      const size_t common = std::min(text.size(), right.size());
      EXPECT_EQ(text.substr(0, common), right.substr(0, common));
      EXPECT_EQ(file.post(one.route, body(1)).status, 500);
    }
  }
}

TEST(ChangedFile, EndsWhatIsUnderWayOrWaitsWith500) {
  for (const Change how : {Change::cut, Change::overwritten}) {
    SCOPED_TRACE(static_cast<int>(how));
    const ServedFile file;
    constexpr std::string_view kLong = R"({"prompt":"Once","max_tokens":1000000})";
    std::vector<std::unique_ptr<Socket>> sockets;
    const SchedulerOptions limits;
    for (int64_t i = 0; i < limits.sessions + 2; ++i)
      sockets.push_back(file.begin("/v1/completions", kLong));
    const auto counts = [&] { return file.server().models().counts(); };
    ASSERT_TRUE(wait_until([&] { return counts().running == limits.sessions; }));
    ASSERT_TRUE(wait_until([&] { return counts().waiting == 2 && counts().passes > 1; }));
    file.change(how);
    for (const auto& socket : sockets) {
      const Answer answer = parsed(socket->receive_all());
      EXPECT_EQ(answer.status, 500) << answer.body;
      EXPECT_THAT(answer.body, HasSubstr(kChanged));
    }
    EXPECT_EQ(counts().failed, limits.sessions + 2);
  }
}

// They wait for the thread that computes vectors while the file changes.
TEST(ChangedFile, NoVectorOrChanceOfOtherBytesIsSent) {
  struct Asked {
    const char *route, *body;
  };
  const Asked all[] = {
      {"/v1/embeddings", R"({"input":"Once"})"},
      {"/api/embed", R"({"input":["Once","upon"]})"},
      {"/embedding", R"({"content":"Once"})"},
      {"/v1/completions",
       R"({"prompt":"Once upon","max_tokens":0,"echo":true,"logprobs":1,"temperature":0})"},
  };
  for (const Asked& one : all) {
    SCOPED_TRACE(one.route);
    const ServedFile file;
    ASSERT_EQ(file.post(one.route, one.body).status, 200);
    std::mutex held;
    held.lock();
    const Models::Use use = file.server().models().first_loaded();
    ASSERT_TRUE(use->compute([&held] { const std::lock_guard wait(held); }));
    const auto socket = file.begin(one.route, one.body);
    // Workers take requests in turn, so the one before was read when these are answered.
    for (int i = 0; i < 4; ++i) EXPECT_EQ(file.post("/tokenize", R"({"content":"a"})").status, 200);
    file.change(Change::overwritten);
    held.unlock();
    const Answer answer = parsed(socket->receive_all());
    EXPECT_EQ(answer.status, 500) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(kChanged));
  }
}

}  // namespace
}  // namespace loom::core::test
