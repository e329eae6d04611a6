// Any bytes from a client to the server of `loom serve`, in parts as they may arrive. A second,
// naive reader finds the end of each request. The server must take the same requests with the same
// bodies, and none after an ambiguous one. Every reply is well-formed. Half of the inputs go on to
// the routes, whose JSON is read as far as possible without a computation.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "check.hpp"
#include "http_framing.hpp"
#include "io/json/json.hpp"
#include "peer.hpp"
#include "serve/http/http_reply.hpp"
#include "serve/http/http_sockets.hpp"
#include "serve/server.hpp"

using namespace loom::core;
using loom_fuzz::Framed;
using loom_fuzz::FramedReply;
using loom_fuzz::Next;

namespace {

constexpr std::chrono::milliseconds kNow(0);
constexpr uint64_t kMaxBody = 16 << 10, kMaxMemory = 64 << 10;

// ---- the routes ---------------------------------------------------------------------------------

std::atomic<int> blocked{0};

// Keeps a thread busy forever.
void block() {
  static std::atomic<bool> never{false};
  ++blocked;
  blocked.notify_all();
  never.wait(false);
}

void wait_for_blocked(int count) {
  for (int n = blocked; n < count; n = blocked) blocked.wait(n);
}

// A server whose model is always busy. It reads and checks a request and then has no room for it
// (429). It is never destroyed, because of the busy threads.
LlmServer* make_routes() {
  const char* path = std::getenv("LOOM_FUZZ_MODEL");
  const auto engine = loom::Engine::create({.threads = 1});
  CHECK(engine.ok());
  auto model = loom::Model::load(*engine, path != nullptr ? path : LOOM_FUZZ_MODEL_PATH);
  CHECK(model.ok());
  LlmServerOptions options;
  options.port = 0;
  options.without = {"page", "slots"};
  options.service.name = "stories";
  options.service.version = "fuzz";
  options.service.scheduler.sessions = 1;
  options.service.scheduler.waiting = 0;
  options.service.scheduler.session.context = 128;
  auto server = LlmServer::start(std::move(*model), options);
  CHECK(server.ok());
  Models::Use service = (*server)->models().first_loaded();
  auto job = std::make_unique<Job>();
  job->prompt = {1};
  job->options.max_tokens = 1;
  job->on_start = [](int64_t) { block(); };
  CHECK(service->scheduler().add(std::move(job)));
  CHECK(service->compute(block));
  wait_for_blocked(2);
  while (service->compute(block)) continue;
  return server->release();
}

LlmServer& routes() {
  static LlmServer* const server = make_routes();
  return *server;
}

// Counts a reply until it is released.
class Counted final : public ForwardingReply {
 public:
  Counted(std::shared_ptr<HttpReply> reply, std::atomic<int>& open)
      : ForwardingReply(std::move(reply)), open_(open) {
    ++open_;
  }
  ~Counted() override {
    reply_.reset();
    --open_;
    open_.notify_all();
  }

 private:
  std::atomic<int>& open_;
};

// ---- a connection -------------------------------------------------------------------------------

// The meaning of the first byte of an input.
struct Mode {
  uint8_t bits;
  bool to_routes() const { return (bits & 1) != 0; }
  int answer() const { return bits >> 1 & 3; }  // 0 means whole, 1 in parts, 2 cut, 3 none
};

// The server and its connection of this execution; a server is made once.
struct World {
  World()
      : server(HttpSockets::create(limits(), [this](auto request, auto reply) {
          handle(std::move(request), std::move(reply));
        })) {}

  HttpLimits limits() const {
    HttpLimits out;
    out.header_bytes = 8 << 10;
    out.body_bytes = kMaxBody;
    out.all_bodies = 2 * kMaxBody;
    out.memory = engine;
    return out;
  }

  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    CHECK(request.body.size() <= kMaxBody);
    handled.push_back(request);
    if (mode.to_routes() && request.path != "/openapi.json")
      return routes().handle(std::move(request), std::make_shared<Counted>(reply, open));
    const std::string text = cat(request.method, " ", request.body.size());
    if (mode.answer() == 3) return;
    if (mode.answer() == 0) return reply->send(200, {{"Content-Type", "text/plain"}}, text);
    reply->begin(200, {{"Content-Type", "text/plain"}});
    reply->write(text);
    reply->write("");
    reply->write(request.path);
    if (mode.answer() == 1) reply->end();
  }

  // Until no work is left, and all sent bytes are read.
  void pump() {
    do {
      while (server->run_one(kNow)) continue;
      for (int n = open; n > 0; n = open) open.wait(n);
      while (server->run_one(kNow)) continue;
    } while (peer->read(received));
  }

  void talk(std::string_view text, uint8_t seed) {
    loom_fuzz::Peer mine;
    peer = &mine;
    handled.clear();
    received.clear();
    CHECK(server->take(mine.theirs()).ok());
    for (const std::string_view piece : loom_fuzz::pieces(text, seed)) {
      if (!mine.write(piece)) break;
      pump();
    }
    mine.end_writing();
    pump();
    mine.read(received);
    CHECK(mine.ended());
    CHECK(server->connections() == 0);
    CHECK(engine.memory_left() == kMaxMemory);
  }

  const loom::Engine engine =
      loom::Engine::create({.threads = 1, .memory_limit = kMaxMemory}).or_exit();
  Mode mode{0};
  std::vector<HttpRequest> handled;
  std::string received;
  std::atomic<int> open{0};
  loom_fuzz::Peer* peer = nullptr;
  std::unique_ptr<HttpSockets> server;
};

// ---- properties ---------------------------------------------------------------------------------

int hex(char c) {
  const size_t at = loom_fuzz::kHex.find(c);
  return at == loom_fuzz::kHex.npos ? -1 : static_cast<int>(at < 16 ? at : at - 6);
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(16 * hex(text[i + 1]) + hex(text[i + 2])) : text[i];
    i += escape ? 2 : 0;
  }
  return out;
}

// Splits the bytes of a client into requests, up to one that ends the connection.
std::vector<Framed> expected(std::string_view text, Next& next) {
  std::vector<Framed> out;
  for (size_t at = 0;;) {
    Framed one;
    next = loom_fuzz::take_request(text, at, one);
    if (next != Next::request) return out;
    out.push_back(std::move(one));
    if (out.back().closes) return out;
  }
}

void check_requests(const World& world, std::string_view text) {
  Next next = Next::incomplete;
  const std::vector<Framed> all = expected(text, next);
  CHECK(world.handled.size() <= all.size());
  for (size_t i = 0; i < world.handled.size(); ++i) {
    const HttpRequest& got = world.handled[i];
    CHECK(got.method == all[i].method);
    CHECK(got.body == all[i].body);
    if (!all[i].target.starts_with('/')) continue;
    const std::string_view target = all[i].target;
    const size_t mark = std::min(target.find('?'), target.size());
    CHECK(got.path == decoded(target.substr(0, mark)));
    CHECK(got.query == target.substr(std::min(mark + 1, target.size())));
  }
  // A reply that is cut ends the connection.
  if (world.mode.answer() >= 2) return;
  for (size_t i = 0; i < all.size() && all[i].certain; ++i) CHECK(i < world.handled.size());
}

constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";

bool is_refusal(int status) {
  return status == 400 || status == 413 || status == 431 || status == 501 || status == 503 ||
         status == 505;
}

void check_replies(const World& world) {
  std::string_view bytes = world.received;
  bool closed = false, cut = false;
  size_t count = 0;
  for (;;) {
    // After it the client may have gone.
    while (bytes.starts_with(kGoOn)) bytes.remove_prefix(kGoOn.size());
    if (bytes.empty()) break;
    CHECK(!closed && !cut);
    const bool of_request = count < world.handled.size();
    const bool head_only = of_request && world.handled[count].method == "HEAD";
    const FramedReply reply = loom_fuzz::take_reply(bytes, head_only);
    ++count;
    closed = reply.closes;
    cut = !reply.whole;
    CHECK(http_reason(reply.status) != "Unknown");
    CHECK(of_request || (is_refusal(reply.status) && closed && reply.whole));
    CHECK(reply.whole || world.mode.answer() == 2);
    const auto type = loom_fuzz::values_of(reply.fields, "content-type");
    if (!type.empty() && type[0] == "application/json" && !head_only)
      CHECK(parse_json(reply.body, "the reply").ok());
  }
  CHECK(count >= world.handled.size() && count <= world.handled.size() + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static World world;
  world.mode = Mode{data[0]};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  world.talk(text, data[1]);
  check_requests(world, text);
  check_replies(world);
  return 0;
}
