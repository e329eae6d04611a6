// Allocations of the server that fail, each in its turn: the request gets 503, the process lives,
// and what follows has the same text as before. The environment variable LOOM_FAULTS=all tries
// every allocation of every kind of request; without it a sample is tried.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "client.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace {

std::atomic<int64_t> countdown{0};   // the allocation that fails; 0 and less: none
std::atomic<int64_t> allocations{0};  // of the server, since the last request began
thread_local bool is_test = false;    // this thread is the client

bool fails() {
  if (is_test) return false;
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (countdown.load(std::memory_order_relaxed) <= 0) return false;
  return countdown.fetch_sub(1) == 1;
}
void* allocate(std::size_t size, std::size_t alignment) {
  if (fails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size > 0 ? size : 1);
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole > 0 ? whole : alignment);
}
void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace loom::core::test {
namespace {

struct Kind {
  const char* method;
  const char* path;
  const char* body;
};

#define TWO_TOKENS R"("seed":3,"max_tokens":2,"temperature":0)"
#define HELLO R"("messages":[{"role":"user","content":"Hi"}])"
#define TOOLS                                                                  \
  R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":) \
  R"("object","properties":{"a":{"type":"integer"}}}}}])"

const Kind kKinds[] = {
    {"POST", "/v1/completions", R"({"prompt":"Once",)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":["Once","Tom"],"n":2,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":[7,8,9],"logprobs":2,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","echo":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","logit_bias":{"a":1},)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","json_schema":{"type":"integer"},)" TWO_TOKENS
                                "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","grammar":"root ::= [a-z]+",)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":"Once","stop":["x"],)" TWO_TOKENS "}"},
    {"POST", "/v1/completions", R"({"prompt":3})"},
    {"POST", "/v1/completions", R"({"prompt":)"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO R"(,"stream":true,"resumable":true,)" TWO_TOKENS
                                     "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"stream":true,"stream_options":{"include_usage":true},)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO R"(,"logprobs":true,"top_logprobs":2,)" TWO_TOKENS
                                     "}"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TOOLS "," TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TOOLS R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO "," TOOLS R"(,"tool_choice":"required",)" TWO_TOKENS
                                     "}"},
    {"POST", "/v1/chat/completions",
     "{" HELLO R"(,"response_format":{"type":"json_object"},)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions", "{" HELLO R"(,"return_progress":true,"stream":true,)"
                                     R"("timings_per_token":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/chat/completions/input_tokens", "{" HELLO "}"},
    {"POST", "/v1/responses", R"({"input":"Hi","max_output_tokens":2,"temperature":0})"},
    {"POST", "/v1/responses",
     R"({"input":"Hi","max_output_tokens":2,"temperature":0,"stream":true})"},
    {"POST", "/v1/responses/input_tokens", R"({"input":"Hi"})"},
    {"POST", "/v1/messages", "{" HELLO "," TWO_TOKENS "}"},
    {"POST", "/v1/messages", "{" HELLO R"(,"stream":true,)" TWO_TOKENS "}"},
    {"POST", "/v1/messages", "{" HELLO R"(,"tools":[{"name":"f","input_schema":{}}],)" TWO_TOKENS
                             "}"},
    {"POST", "/v1/messages/count_tokens", "{" HELLO "}"},
    {"POST", "/api/generate",
     R"({"prompt":"Hi","stream":false,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/generate", R"({"prompt":"Hi","options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/generate",
     R"({"prompt":"Hi","raw":true,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat",
     "{" HELLO R"(,"stream":false,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat", "{" HELLO R"(,"options":{"num_predict":2,"temperature":0}})"},
    {"POST", "/api/chat", R"({"messages":[]})"},
    {"POST", "/api/show", "{}"},
    {"GET", "/api/tags", ""},
    {"GET", "/api/ps", ""},
    {"GET", "/api/version", ""},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0})"},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0,"stream":true})"},
    {"POST", "/completion", R"({"prompt":"Once","n_predict":2,"temperature":0,"n_probs":3})"},
    {"POST", "/tokenize", R"({"content":"Once upon","with_pieces":true})"},
    {"POST", "/detokenize", R"({"tokens":[7,8,9]})"},
    {"POST", "/apply-template", "{" HELLO "}"},
    {"POST", "/v1/embeddings", R"({"input":["Once","Tom"]})"},
    {"POST", "/v1/embeddings", R"({"input":"Once","encoding_format":"base64"})"},
    {"POST", "/api/embed", R"({"input":"Once"})"},
    {"POST", "/embedding", R"({"content":"Once"})"},
    {"POST", "/predict",
     R"({"instances":[{"@requestFormat":"chatCompletions",)" HELLO "," TWO_TOKENS "}]}"},
    {"GET", "/v1/models", ""},
    {"GET", "/props", ""},
    {"GET", "/slots", ""},
    {"GET", "/metrics", ""},
    {"GET", "/health", ""},
    {"GET", "/openapi.json", ""},
    {"GET", "/", ""},
    {"GET", "/nothing", ""},
    {"DELETE", "/v1/models", ""},
};

// The strings of a reply that say what the model wrote.
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
  // Fails the n-th allocation after the connection is there; 0: none.
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
  const int64_t step = every ? 1 : std::max<int64_t>(count / 40, 1);
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
