// DonateServer: serves remote clients that push a model and run it, or that use the local model.
// The protocol is that of "donate compute" (docs/donate.md).
//
// Threads: one reads and writes connections (DonateListener), one reads messages, and each worker
// has its own. Messages of a connection are handled in order; its next one is read after the last
// one was handled.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "remote/jobs.hpp"
#include "remote/listener.hpp"
#include "remote/model.hpp"

namespace loom::core {

constexpr int64_t kDonatePort = 17001;
// Default tokens of infer and prompt.
constexpr int64_t kDonateInferTokens = 8, kDonatePromptTokens = 64;

struct DonateOptions {
  std::string address = "127.0.0.1";
  int64_t port = kDonatePort;  // 0 means any free port
  int64_t queue = 64, workers = 1;
  uint64_t max_bytes = uint64_t{2} << 30;  // of all uploads together
  std::string secret;                      // clients must know it; empty means none is required
  TlsContext tls;                          // null means TCP is not encrypted
  bool allow_plaintext = false;            // allow other machines without TLS
  DonateLimits limits;
  // Exactly one of two: the local model (mode "local_lm") with its name for clients, or the
  // function that mounts a pushed one ("model_push").
  std::shared_ptr<DonateModel> model;
  std::string name;
  DonateMount mount{};
};

class DonatePeer;

class DonateServer {
 public:
  // Listens; from here on clients are answered. Errors: those of address and port; invalid_argument
  // (an address that is not loopback without a secret or TLS, a secret that is too short).
  static Result<std::unique_ptr<DonateServer>> start(const DonateOptions& options);
  // A server without listening and threads: take() adds connections, and run_one() does the work.
  // Errors: as start().
  static Result<std::unique_ptr<DonateServer>> create(const DonateOptions& options);
  ~DonateServer();

  // As in DonateListener, for a server from create().
  Status take(int descriptor) { return listener_->take(descriptor); }
  bool run_one(std::chrono::milliseconds most);

  uint16_t port() const { return listener_->port(); }
  // Replaces DonateOptions::tls for new connections.
  void use_tls(TlsContext context) { listener_->use_tls(std::move(context)); }
  int64_t connections() const { return listener_->connections(); }
  const DonateJobs& jobs() const { return jobs_; }
  // Refuses new connections and jobs. Waiting jobs get an error; running ones have this time to
  // end. Returns true if they did.
  bool stop(std::chrono::milliseconds grace);

 private:
  friend class DonatePeer;
  DonateServer(const DonateOptions& options, int64_t workers);
  void later(std::function<void()> work);
  DonateLimits limits() const;
  void read_messages();
  // Handles the oldest message. Returns false if none waits.
  bool read_message();
  std::shared_ptr<DonateModel> model() const;
  void mounted(std::shared_ptr<DonateModel> model);

  const DonateOptions options_;
  const std::shared_ptr<DonateAccount> account_;
  DonateJobs jobs_;
  std::unique_ptr<DonateListener> listener_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  std::shared_ptr<DonateModel> model_;
  bool stopping_ = false;
  std::thread reader_, messages_;
};

}  // namespace loom::core
