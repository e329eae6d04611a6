// A server of "donate compute" on a free port of this machine, a client that sends exact bytes, and
// models that compute a given function.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "base/waits.hpp"
#include "io/bytes/base64.hpp"
#include "io/json/json.hpp"
#include "remote/frame.hpp"
#include "remote/message.hpp"
#include "remote/server.hpp"
#include "serve/client.hpp"

namespace loom::core::test {

// Answers infer with the ids and their count, prompt with the text in brackets; waits in `wait`.
class EchoModel final : public DonateModel {
 public:
  std::function<void(const DonateGoOn&)> wait = [](const DonateGoOn&) {};
  Result<std::vector<TokenId>> infer(size_t, std::span<const TokenId> ids, int64_t,
                                     const DonateGoOn& go_on) override {
    wait(go_on);
    if (!go_on()) return make_error(Code::cancelled, "stopped");
    std::vector<TokenId> out(ids.begin(), ids.end());
    out.push_back(static_cast<TokenId>(ids.size()));
    return out;
  }
  Result<std::string> prompt(size_t, std::string_view text, int64_t,
                             const DonateGoOn& go_on) override {
    wait(go_on);
    if (!go_on()) return make_error(Code::cancelled, "stopped");
    return cat("[", text, "]");
  }
};

inline std::unique_ptr<DonateServer> donate_server(DonateOptions options) {
  options.port = 0;
  Result<std::unique_ptr<DonateServer>> server = DonateServer::start(options);
  EXPECT_TRUE(server.ok()) << server.error().str();
  return std::move(*server);
}

// Mode local_lm.
inline DonateOptions echo_options(std::shared_ptr<EchoModel> model = nullptr) {
  DonateOptions options;
  options.model = model == nullptr ? std::make_shared<EchoModel>() : std::move(model);
  options.name = "echo";
  return options;
}

// Mode model_push, where anything but "bad" can be mounted.
inline DonateOptions push_options() {
  DonateOptions options;
  options.mount =
      [](std::shared_ptr<const DonatedModel> pushed) -> Result<std::shared_ptr<DonateModel>> {
    const auto bytes = pushed->bytes.view();
    if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == "bad")
      return bad_file("no model", "the pushed model");
    return std::shared_ptr<DonateModel>(std::make_shared<EchoModel>());
  };
  return options;
}

class RawClient {
 public:
  explicit RawClient(const DonateServer& server) : socket_(server.port()) {
    EXPECT_TRUE(socket_.good());
  }
  bool send_bytes(std::string_view bytes) const { return socket_.send(bytes); }
  bool say(std::string_view json) const { return send_bytes(donate_frame(json)); }

  // The next message, as text; "" when the connection ended or nothing came in time.
  std::string hear(int milliseconds = kDeadlineMs) {
    while (true) {
      if (read_.size() >= kDonateHead) {
        DonateHead head{};
        for (size_t i = 0; i < kDonateHead; ++i) head[i] = static_cast<unsigned char>(read_[i]);
        const Result<uint32_t> length = donate_length(head);
        EXPECT_TRUE(length.ok());
        if (!length.ok()) return {};
        if (read_.size() >= kDonateHead + *length) {
          const std::string out = read_.substr(kDonateHead, *length);
          read_.erase(0, kDonateHead + *length);
          return out;
        }
      }
      const std::string more = socket_.receive(milliseconds);
      if (more.empty()) return {};
      read_ += more;
    }
  }
  JsonValue hear_json() {
    const std::string text = hear();
    Result<JsonValue> message = read_donate_message(text);
    EXPECT_TRUE(message.ok()) << text;
    return message.ok() ? *message : JsonValue();
  }
  std::string ask(std::string_view json) {
    EXPECT_TRUE(say(json));
    return hear();
  }
  // Expects an error as the answer, after which the connection is closed.
  bool ended() {
    while (!hear().empty()) continue;
    return socket_.ended();
  }

 private:
  Socket socket_;
  std::string read_;
};

inline std::string begin_message(uint64_t length, std::string_view extra = {}) {
  return cat(R"({"v":1,"type":"model_begin","config_json":"{}","weights_len":)", length, extra,
             "}");
}
inline std::string chunk_message(int64_t index, std::string_view bytes, bool last) {
  return cat(R"({"v":1,"type":"weights_chunk","index":)", index, R"(,"last":)",
             last ? "true" : "false", R"(,"data_b64":")", encode_base64(bytes), "\"}");
}
constexpr std::string_view kCommit = R"({"v":1,"type":"model_commit"})";
constexpr std::string_view kQueueStatus = R"({"v":1,"type":"queue_status"})";
inline std::string infer_message(std::string_view job, std::string_view ids) {
  return cat(R"({"v":1,"type":"infer","job_id":")", job, R"(","input_ids":)", ids, "}");
}
inline std::string prompt_message(std::string_view job, std::string_view text) {
  return cat(R"({"v":1,"type":"prompt","job_id":")", job, R"(","prompt":")", text, "\"}");
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace loom::core::test
