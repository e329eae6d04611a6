// Hundreds of invalid frames: damaged messages, wrong lengths, fields of wrong types, parts, and
// connections that break off. The server answers the next client after each. LOOM_DONATE_CASES=N:
// so many connections.
#include <cstdlib>
#include <random>

#include "rig.hpp"

namespace loom::core::test {
namespace {

class Hostile {
 public:
  explicit Hostile(uint32_t seed) : random_(seed) {}

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  std::string value() {
    constexpr const char* kValues[] = {"null",
                                       "true",
                                       "0",
                                       "-1",
                                       "1",
                                       "1e400",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1.5",
                                       "\"\"",
                                       "\"a\"",
                                       "\"YWJj\"",
                                       "\"\\u0000\"",
                                       "\"\\ud800\"",
                                       "[]",
                                       "[1,2,3]",
                                       "[null]",
                                       "{}",
                                       "{\"a\":{}}",
                                       "\"\xff\"",
                                       "nul",
                                       "[[[[[[[[[[[[[[[[[[[["};
    return kValues[below(static_cast<uint32_t>(std::size(kValues)))];
  }

  std::string message() {
    constexpr const char* kTypes[] = {
        "hello", "model_begin", "weights_chunk", "model_chunk", "model_commit",
        "infer", "prompt",      "queue_status",  "error",       "model_status",
        ""};
    constexpr const char* kFields[] = {"mode",    "role",      "config_json", "weights_len",
                                       "index",   "last",      "data_b64",    "weights_sha256",
                                       "job_id",  "input_ids", "max_tokens",  "prompt",
                                       "max_out", "proof",     "v",           "type"};
    std::string out = below(20) == 0 ? "{" : R"({"v":1)";
    if (below(20) != 0)
      out += cat(R"(,"type":")", kTypes[below(static_cast<uint32_t>(std::size(kTypes)))], "\"");
    for (uint32_t n = below(6); n > 0; --n)
      out += cat(",\"", kFields[below(static_cast<uint32_t>(std::size(kFields)))], "\":", value());
    return out + "}";
  }

  // A valid message, so that later states are reached.
  std::string good() {
    switch (below(6)) {
      case 0: return begin_message(1 + below(8));
      case 1: return chunk_message(below(3), std::string(below(5), 'x'), below(3) == 0);
      case 2: return std::string(kCommit);
      case 3: return infer_message("job", "[1,2]");
      case 4: return prompt_message("job", "text");
      default: return std::string(kQueueStatus);
    }
  }

  std::string frame() {
    std::string body = below(2) == 0 ? good() : message();
    if (below(4) == 0 && !body.empty()) body[below(static_cast<uint32_t>(body.size()))] ^= 0x10;
    if (below(12) == 0) body.resize(below(static_cast<uint32_t>(body.size()) + 1));
    if (below(20) == 0) body = std::string(100000, '[');
    std::string out = donate_frame(body);
    if (below(15) == 0) out[below(4)] ^= static_cast<char>(1 << below(8));  // another length
    if (below(15) == 0) out.resize(below(static_cast<uint32_t>(out.size()) + 1));
    return out;
  }

 private:
  std::mt19937 random_;
};

int cases() {
  const char* asked = std::getenv("LOOM_DONATE_CASES");
  return asked == nullptr ? 300 : std::atoi(asked);
}

void attack(const DonateServer& server, uint32_t seed) {
  Hostile hostile(seed);
  RawClient client(server);
  for (uint32_t n = 1 + hostile.below(12); n > 0; --n) {
    const std::string frame = hostile.frame();
    const size_t cut = hostile.below(static_cast<uint32_t>(frame.size()) + 1);
    if (!client.send_bytes(std::string_view(frame).substr(0, cut))) return;
    if (hostile.below(40) == 0) return;  // breaks off in the middle
    if (!client.send_bytes(std::string_view(frame).substr(cut))) return;
    if (hostile.below(4) == 0) client.hear(1);
  }
}

TEST(DonateHostile, WhateverWasSentTheNextClientIsAnswered) {
  DonateOptions push = push_options(), local = echo_options(), secret = echo_options();
  secret.secret = "a secret of 26 characters!";
  for (DonateOptions* options : {&push, &local, &secret}) {
    options->limits.time = std::chrono::milliseconds(1000);
    options->limits.idle_time = kDeadline;  // those that are asked last may take their time
    options->max_bytes = 100;
    options->queue = 4;
  }
  const auto pushes = donate_server(push), locals = donate_server(local),
             secrets = donate_server(secret);
  const int count = cases();
  const auto run = [&](int from) {
    for (int i = from; i < count; i += 3) {
      const DonateServer* servers[] = {pushes.get(), locals.get(), secrets.get()};
      attack(*servers[i / 3 % 3], static_cast<uint32_t>(i));
    }
  };
  std::thread one([&] { run(0); }), two([&] { run(1); });
  run(2);
  one.join();
  two.join();
  for (const DonateServer* server : {pushes.get(), locals.get()}) {
    RawClient client(*server);
    EXPECT_TRUE(has(client.hear(), "hello"));
    EXPECT_TRUE(has(client.ask(kQueueStatus), "queue_status"));
  }
  RawClient client(*secrets);
  EXPECT_TRUE(has(client.hear(), "challenge"));
}

TEST(DonateHostile, AFrameCutAtEveryByteIsForgottenWithItsConnection) {
  const std::string frames = donate_frame(begin_message(3)) +
                             donate_frame(chunk_message(0, "abc", true)) + donate_frame(kCommit);
  DonateOptions options = push_options();
  // A busy machine closes them more slowly than they come.
  options.limits.connections = static_cast<int64_t>(frames.size()) + 1;
  const auto server = donate_server(options);
  for (size_t cut = 0; cut < frames.size(); ++cut) {
    RawClient client(*server);
    client.send_bytes(std::string_view(frames).substr(0, cut));
  }
  RawClient client(*server);
  client.hear();
  EXPECT_TRUE(has(client.ask(infer_message("a", "[1]")), "model not mounted"));
}

}  // namespace
}  // namespace loom::core::test
