// DonateClient: a connection to a server of "donate compute": pushes a model, asks, and tells
// answers apart by their job_id, in whatever order they come. One thread at a time.
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
#include "io/json.hpp"
#include "net/client.hpp"

namespace loom::core {

struct DonateClientOptions {
  // "host:port", "host" (with the protocol's port), or "unix:PATH".
  std::string to;
  TlsContext tls;  // null: the connection is not encrypted; Unix sockets never are
  // Without TLS, other machines than this one are asked only if this is set.
  bool allow_plaintext = false;
  std::string secret;          // "": none
  double connect_seconds = 8;  // to be let in
  double seconds = 30;         // for a frame to be taken, and for a reply that needs no computing
  // Asked while something is waited for, ten times a second; false ends it with Code::cancelled.
  std::function<bool()> go_on = [] { return true; };
};

struct DonateQueue {
  int64_t depth = 0, capacity = 0, in_progress = 0;  // jobs
};

class DonateClient {
 public:
  // Connects and says hello. Errors: of the address, io_error (nobody answers), bad_file (no such
  // server), invalid_argument (a secret is asked for).
  static Result<std::unique_ptr<DonateClient>> connect(const DonateClientOptions& options);

  // Says hello over a connection that is open. Errors: likewise, but for those of the address.
  static Result<std::unique_ptr<DonateClient>> over(const DonateClientOptions& options,
                                                    std::string name,
                                                    std::unique_ptr<NetClient> connection);

  const std::string& mode() const { return mode_; }   // "model_push" or "local_lm"
  const std::string& model() const { return path_; }  // of mode "local_lm", as the server calls it

  // Bytes sent and in all, after each piece; false ends the push.
  using PushProgress = std::function<bool(int64_t done, int64_t total)>;
  // A whole .entity or GGUF file; `config` is JSON that says what it is. Returns when the server
  // has mounted it. Errors: what the server says; io_error; cancelled.
  Status push(std::string_view file, std::string_view config, const PushProgress& progress = {});

  // Asks and does not wait; the id of the job. `most`: tokens; 0: what the server takes. Errors:
  // invalid_argument (a text that is not UTF-8).
  Result<std::string> send_infer(std::span<const int32_t> ids, int64_t most);
  Result<std::string> send_prompt(std::string_view text, int64_t most);
  // The message that answers the job. Errors: what the server says of it ("queue full").
  Result<JsonValue> answer(const std::string& job_id);

  // Both at once. infer: the ids that were given and those that follow.
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
  // The next message; within so many seconds, or for as long as it takes (0).
  Result<JsonValue> hear(double seconds);
  Result<JsonValue> hear_type(std::string_view type, double seconds);
  Error refused(const JsonValue& error) const;
  std::string next_job() { return "loom-" + std::to_string(++jobs_); }

  const DonateClientOptions options_;
  const std::string to_;
  const std::unique_ptr<NetClient> socket_;
  std::string read_;  // bytes that came
  std::string mode_, path_;
  std::map<std::string, JsonValue> answers_;  // that came while another one was awaited
  int64_t jobs_ = 0;
};

}  // namespace loom::core
