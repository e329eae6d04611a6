// DonateClient: a connection to a server of "donate compute". It pushes a model, sends requests,
// and matches answers by job_id, in any order. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "io/json/json.hpp"
#include "net/client.hpp"

namespace loom::core {

struct DonateClientOptions {
  // "host:port", "host" (with the protocol's port), or "unix:PATH".
  std::string to;
  TlsContext tls;  // null means no encryption; Unix sockets never have it
  // Without TLS, other machines are contacted only if this is set.
  bool allow_plaintext = false;
  std::string secret;          // empty means none
  double connect_seconds = 8;  // to connect and authenticate
  double seconds = 30;         // to send a frame, and for a reply without computation
  // Called ten times a second during a wait; false ends it with Code::cancelled.
  std::function<bool()> go_on = [] { return true; };
};

struct DonateQueue {
  int64_t depth = 0, capacity = 0, in_progress = 0;  // jobs
};

class DonateClient {
 public:
  // Connects and says hello. Errors: those of the address, io_error (no answer), bad_file (not such
  // a server), invalid_argument (a secret is required).
  static Result<std::unique_ptr<DonateClient>> connect(const DonateClientOptions& options);

  // Says hello over an open connection. Errors: the same, except those of the address.
  static Result<std::unique_ptr<DonateClient>> over(const DonateClientOptions& options,
                                                    std::string name,
                                                    std::unique_ptr<NetClient> connection);

  const std::string& mode() const { return mode_; }   // "model_push" or "local_lm"
  const std::string& model() const { return path_; }  // in mode "local_lm"

  // Bytes sent and total, after each piece; false ends the push.
  using PushProgress = std::function<bool(int64_t done, int64_t total)>;
  // Pushes a whole .entity or GGUF file; `config` is JSON that describes it. Returns after the
  // server has mounted it. Errors: those of the server; io_error; cancelled.
  Status push(std::string_view file, std::string_view config, const PushProgress& progress = {});

  // Sends a job and returns its id without waiting. `most`: tokens; 0 means the server's default.
  // Errors: invalid_argument (a text that is not UTF-8).
  Result<std::string> send_infer(std::span<const int32_t> ids, int64_t most);
  Result<std::string> send_prompt(std::string_view text, int64_t most);
  // The message that answers the job. Errors: the server's for this job ("queue full").
  Result<JsonValue> answer(const std::string& job_id);

  // Sends and waits. infer: returns the given ids and those that follow.
  Result<std::vector<int32_t>> infer(std::span<const int32_t> ids, int64_t most);
  Result<std::string> prompt(std::string_view text, int64_t most);
  Result<DonateQueue> queue();

 private:
  DonateClient(const DonateClientOptions& options, std::string to,
               std::unique_ptr<NetClient> socket)
      : options_(options), to_(std::move(to)), socket_(std::move(socket)) {}
  Status greet();
  Status send(const JsonValue& message);
  Status send_piece(int64_t index, std::string_view piece, bool last);
  // The next message; within this many seconds, or without limit (0).
  Result<JsonValue> hear(double seconds);
  Result<JsonValue> hear_type(std::string_view type, double seconds);
  Error refused(const JsonValue& error) const;
  std::string next_job() { return "loom-" + std::to_string(++jobs_); }

  const DonateClientOptions options_;
  const std::string to_;
  const std::unique_ptr<NetClient> socket_;
  std::string read_;  // received bytes
  std::string mode_, path_;
  std::map<std::string, JsonValue> answers_;  // received while another one was awaited
  int64_t jobs_ = 0;
};

}  // namespace loom::core
