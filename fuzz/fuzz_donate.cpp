// Any bytes to both sides of "donate compute": a client's to the server, a server's to the client,
// and texts that a client and a server exchange. Every frame that goes out is a message of the
// protocol, no job is answered twice or forgotten, and nothing is answered before the secret.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "check.hpp"
#include "peer.hpp"
#include "remote/client.hpp"
#include "remote/frame.hpp"
#include "remote/message.hpp"
#include "remote/secret.hpp"
#include "remote/server.hpp"
#include "text/normalizers/unicode.hpp"

using namespace loom::core;
using loom::Code;
using loom::Result;
using loom::Status;
using loom::TokenId;

namespace {

constexpr std::chrono::milliseconds kNow(0);
constexpr const char* kSecret = "a secret of the fuzzer";
constexpr std::string_view kProofMark = "@PROOF@";  // the target replaces it
constexpr uint64_t kMaxModel = 64 << 10;

// The meaning of the first byte of an input.
struct Mode {
  uint8_t bits;
  int side() const { return bits % 3; }  // 0 means to the server, 1 to the client, 2 both
  bool secret() const { return (bits & 0x10) != 0; }
  bool pushes() const { return (bits & 0x20) != 0; }
  bool lines() const {
    return (bits & 0x40) != 0;
  }  // each line is a message; else frames are given
};

// Answers infer with the ids and their count, prompt with the text in brackets.
class Echo final : public DonateModel {
 public:
  explicit Echo(int64_t& calls) : calls_(calls) {}
  Result<std::vector<TokenId>> infer(size_t, std::span<const TokenId> ids, int64_t,
                                     const DonateGoOn&) override {
    ++calls_;
    std::vector<TokenId> out(ids.begin(), ids.end());
    out.push_back(static_cast<TokenId>(ids.size()));
    return out;
  }
  Result<std::string> prompt(size_t, std::string_view text, int64_t, const DonateGoOn&) override {
    ++calls_;
    return cat("[", text, "]");
  }

 private:
  int64_t& calls_;
};

DonateOptions options_of(Mode mode, int64_t& calls) {
  DonateOptions options;
  options.queue = 3;
  options.max_bytes = kMaxModel;
  options.limits.frames = 256 << 10;
  options.limits.waiting_bytes = 16 << 10;
  if (mode.secret()) options.secret = kSecret;
  if (!mode.pushes()) {
    options.model = std::make_shared<Echo>(calls);
    options.name = "echo";
    return options;
  }
  options.mount =
      [&calls](std::shared_ptr<const DonatedModel> pushed) -> Result<std::shared_ptr<DonateModel>> {
    CHECK(pushed->bytes.size() > 0 && pushed->bytes.size() <= kMaxModel);
    CHECK(!pushed->config.empty());
    if (std::to_integer<int>(pushed->bytes.view()[0]) == '!') return bad_file("no model", "pushed");
    return std::shared_ptr<DonateModel>(std::make_shared<Echo>(calls));
  };
  return options;
}

std::string framed(std::string_view text, bool lines) {
  if (!lines) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) out += donate_frame(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Whole frames of a stream, by an independent reader.
std::vector<std::string_view> frames_of(std::string_view bytes) {
  std::vector<std::string_view> out;
  while (bytes.size() >= 4) {
    size_t length = 0;
    for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    if (length == 0 || length > bytes.size() - 4) break;
    out.push_back(bytes.substr(4, length));
    bytes.remove_prefix(4 + length);
  }
  return out;
}

// The type of a message of the server. Errors, which it also writes by hand, are read as JSON.
std::string_view type_of(std::string_view frame) {
  constexpr std::string_view kBegin = R"({"v":1,"type":")";
  CHECK(frame.starts_with(kBegin) && frame.ends_with("}"));
  const std::string_view rest = frame.substr(kBegin.size());
  const std::string_view type = rest.substr(0, rest.find('"'));
  constexpr std::array<std::string_view, 6> kTypes = {
      "hello", "error", "model_status", "infer_result", "prompt_result", "queue_status"};
  CHECK(std::ranges::find(kTypes, type) != kTypes.end());
  CHECK(type != "error" || read_donate_message(frame).ok());
  return type;
}

// ---- to the server ------------------------------------------------------------------------------

class Talk {
 public:
  Talk(Mode mode, uint8_t seed) : mode_(mode), seed_(seed) {
    Result<std::unique_ptr<DonateServer>> made = DonateServer::create(options_of(mode, calls_));
    CHECK(made.ok());
    server_ = std::move(*made);
    CHECK(server_->take(peer_.theirs()).ok());
    pump();
  }

  // Until no work is left, and all sent bytes are read.
  void pump() {
    do {
      while (server_->run_one(kNow)) continue;
    } while (peer_.read(heard_));
  }

  void say(std::string_view text) {
    std::string bytes = framed(text, mode_.lines());
    for (const std::string_view piece : loom_fuzz::pieces(bytes, seed_)) {
      if (!peer_.write(piece)) break;
      pump();
    }
    said_ += bytes;
  }

  void end() {
    pump();
    peer_.end_writing();
    pump();
    CHECK(peer_.ended() || (peer_.read(heard_), peer_.ended()));
    CHECK(server_->connections() == 0);
    CHECK(server_->jobs().depth() == 0 && server_->jobs().in_progress() == 0);
  }

  std::string challenge() const {
    const auto frames = frames_of(heard_);
    CHECK(!frames.empty());
    const Result<JsonValue> hello = read_donate_message(frames[0]);
    CHECK(hello.ok() && donate_type(*hello) == "hello");
    const JsonValue* challenge = hello->find("challenge");
    CHECK((challenge != nullptr) == mode_.secret());
    return challenge == nullptr ? std::string() : challenge->text();
  }

  // Every frame is a message; each received frame has one answer at most.
  void check(bool proven) const {
    const auto frames = frames_of(heard_);
    size_t bytes = 0;
    int64_t computed = 0;
    for (const std::string_view frame : frames) {
      bytes += 4 + frame.size();
      const std::string_view type = type_of(frame);
      CHECK(!mode_.secret() || proven || type == "hello" || type == "error");
      // Texts hold no quote without a backslash before it.
      computed += frame.find(R"("ok":true)") != frame.npos && type.ends_with("_result") ? 1 : 0;
    }
    CHECK(bytes == heard_.size());
    // The sender of an invalid frame gets a message, and may lose results that were still computed.
    CHECK(computed <= calls_ && (computed == calls_ || whole_frames() < said_.size()));
    // A hello, an answer to each frame, and one to an invalid frame.
    CHECK(frames.size() <= 2 + frames_of(said_).size());
  }

 private:
  size_t whole_frames() const {
    size_t bytes = 0;
    for (const std::string_view frame : frames_of(said_)) bytes += 4 + frame.size();
    return bytes;
  }

  const Mode mode_;
  const uint8_t seed_;
  int64_t calls_ = 0;
  loom_fuzz::Peer peer_;  // before the server, which ends first
  std::unique_ptr<DonateServer> server_;
  std::string said_, heard_;
};

void to_server(Mode mode, uint8_t seed, std::string_view text) {
  Talk talk(mode, seed);
  std::string all(text);
  const std::string challenge = talk.challenge();
  bool proven = false;
  if (mode.secret()) {
    const Result<std::string> proof = donate_proof(kSecret, challenge);
    CHECK(proof.ok());
    if (const size_t at = all.find(kProofMark); at != std::string::npos) {
      all.replace(at, kProofMark.size(), *proof);
      proven = true;
    }
  }
  talk.say(all);
  talk.end();
  talk.check(proven);
}

// ---- to the client ------------------------------------------------------------------------------

// A connection on which `bytes` come and then its end.
class Script final : public NetClient {
 public:
  Script(std::string bytes, uint8_t seed, std::string& sent)
      : bytes_(std::move(bytes)), pieces_(loom_fuzz::pieces(bytes_, seed)), sent_(sent) {}
  Status send(std::string_view bytes, double) override {
    sent_ += bytes;
    return {};
  }
  bool readable(double) override { return true; }
  Result<std::string> receive(double) override {
    if (next_ == pieces_.size()) return std::string();
    return std::string(pieces_[next_++]);
  }

 private:
  const std::string bytes_;
  const std::vector<std::string_view> pieces_;
  std::string& sent_;
  size_t next_ = 0;
};

void check_error(const loom::Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 16384);
}

void ask(DonateClient& client, int what) {
  constexpr std::array<TokenId, 3> kIds = {1, 2, 3};
  if (what == 0) {
    const Status pushed = client.push("bytes of a model", "{}");
    if (!pushed.ok()) check_error(pushed.error());
  } else if (what == 1) {
    const Result<std::vector<TokenId>> ids = client.infer(kIds, 2);
    if (!ids.ok()) return check_error(ids.error());
    CHECK(std::ranges::all_of(*ids, [](TokenId id) { return id >= 0; }));
  } else if (what == 2) {
    const Result<std::string> text = client.prompt("Once", 0);
    if (!text.ok()) check_error(text.error());
  } else {
    const Result<DonateQueue> queue = client.queue();
    if (!queue.ok()) return check_error(queue.error());
    CHECK(queue->depth >= 0 && queue->capacity >= 0 && queue->in_progress >= 0);
  }
}

void to_client(Mode mode, uint8_t seed, std::string_view text) {
  const uint8_t asks = text.empty() ? uint8_t{0} : static_cast<uint8_t>(text[0]);
  std::string sent;
  DonateClientOptions options;
  options.to = "fuzz";
  if (mode.secret()) options.secret = kSecret;
  auto script = std::make_unique<Script>(
      framed(text.substr(std::min<size_t>(1, text.size())), mode.lines()), seed, sent);
  const Result<std::unique_ptr<DonateClient>> client =
      DonateClient::over(options, "fuzz", std::move(script));
  if (!client.ok()) return check_error(client.error());
  for (int shift = 0; shift < 8; shift += 2) ask(**client, asks >> shift & 3);
  size_t bytes = 0;
  for (const std::string_view frame : frames_of(sent)) {
    bytes += 4 + frame.size();
    CHECK(read_donate_message(frame).ok());
  }
  CHECK(bytes == sent.size());
}

// ---- both ---------------------------------------------------------------------------------------

// A connection to a server of this thread, which does its work while the client waits.
class Wire final : public NetClient {
 public:
  Wire(DonateServer& server, uint8_t seed) : server_(server), seed_(seed) {
    CHECK(server.take(peer_.theirs()).ok());
  }
  Status send(std::string_view bytes, double) override {
    for (const std::string_view piece : loom_fuzz::pieces(bytes, seed_)) {
      if (!peer_.write(piece)) return make_error(Code::io_error, "closed");
      pump();
    }
    return {};
  }
  bool readable(double) override {
    pump();
    return !heard_.empty() || peer_.ended();
  }
  Result<std::string> receive(double) override { return std::exchange(heard_, {}); }

 private:
  void pump() {
    do {
      while (server_.run_one(kNow)) continue;
    } while (peer_.read(heard_));
  }
  DonateServer& server_;
  const uint8_t seed_;
  loom_fuzz::Peer peer_;
  std::string heard_;
};

void both(Mode mode, uint8_t seed, std::string_view payload) {
  int64_t calls = 0;
  Result<std::unique_ptr<DonateServer>> server = DonateServer::create(options_of(mode, calls));
  CHECK(server.ok());
  DonateClientOptions options;
  options.to = "fuzz";
  if (mode.secret()) options.secret = kSecret;
  const Result<std::unique_ptr<DonateClient>> client =
      DonateClient::over(options, "fuzz", std::make_unique<Wire>(**server, seed));
  CHECK(client.ok());
  if (mode.pushes()) {
    const Status pushed = (*client)->push(payload, "{}");
    const bool fits = !payload.empty() && payload.size() <= kMaxModel;
    CHECK(pushed.ok() == (fits && payload[0] != '!'));
    if (!pushed.ok()) return;
  }
  std::vector<TokenId> ids;
  for (const char c : payload) ids.push_back(static_cast<unsigned char>(c));
  const Result<std::vector<TokenId>> same = (*client)->infer(ids, 1);
  ids.push_back(static_cast<TokenId>(payload.size()));
  CHECK(same.ok() && *same == ids);
  const Result<std::string> echoed = (*client)->prompt(payload, 1);
  CHECK(echoed.ok() == (!payload.empty() && text::is_valid_utf8(payload)));
  if (echoed.ok()) CHECK(*echoed == cat("[", payload, "]"));
  const Result<DonateQueue> queue = (*client)->queue();
  CHECK(queue.ok() && queue->depth == 0 && queue->capacity == 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Mode mode{data[0]};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (mode.side() == 0) to_server(mode, data[1], text);
  if (mode.side() == 1) to_client(mode, data[1], text);
  if (mode.side() == 2) both(mode, data[1], text);
  return 0;
}
