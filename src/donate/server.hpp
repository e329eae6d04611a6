// DonateServer: lends this machine to others, who push a model and let it compute, or ask the model
// that is here. The protocol is that of "donate compute" (docs/donate.md).
//
// Threads: one reads and writes connections (DonateListener), one reads messages, and each worker
// has its own. Messages of a connection are handled in order; its next one is read when the last
// one was.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "donate/jobs.hpp"
#include "donate/listener.hpp"
#include "donate/model.hpp"

namespace loom::core {

constexpr int64_t kDonatePort = 17001;
// What infer and prompt write where the message does not say.
constexpr int64_t kDonateInferTokens = 8, kDonatePromptTokens = 64;

struct DonateOptions {
  std::string address = "127.0.0.1";
  int64_t port = kDonatePort;  // 0: one that is free
  int64_t queue = 64, workers = 1;
  uint64_t max_bytes = uint64_t{2} << 30;  // of models on their way, together
  std::string secret;                      // clients must know it; "": none is asked for
  TlsContext tls;                          // null: TCP is not encrypted
  bool allow_plaintext = false;            // without TLS others reach it all the same
  DonateLimits limits;
  // One of these two: the model that is here (mode "local_lm"), with its name for clients, or what
  // mounts one that is pushed ("model_push").
  std::shared_ptr<DonateModel> model;
  std::string name;
  DonateMount mount{};
};

class DonatePeer;

class DonateServer {
 public:
  // Listens; clients are answered from here on. Errors: of the address and port; invalid_argument
  // (an address that others reach without a secret or TLS, a secret that is too short).
  static Result<std::unique_ptr<DonateServer>> start(const DonateOptions& options);
  // A server that neither listens nor has threads: take() brings its connections, and run_one()
  // does what is to be done. Errors: as start().
  static Result<std::unique_ptr<DonateServer>> create(const DonateOptions& options);
  ~DonateServer();

  // Those below as of DonateListener, for a server of create().
  Status take(int descriptor) { return listener_->take(descriptor); }
  bool run_one(std::chrono::milliseconds most);

  uint16_t port() const { return listener_->port(); }
  // For new connections, in the place of DonateOptions::tls.
  void use_tls(TlsContext context) { listener_->use_tls(std::move(context)); }
  int64_t connections() const { return listener_->connections(); }
  const DonateJobs& jobs() const { return jobs_; }
  // Takes no more connections and jobs; jobs that wait are answered with an error, those under way
  // have so long to end. True: they did.
  bool stop(std::chrono::milliseconds grace);

 private:
  friend class DonatePeer;
  DonateServer(const DonateOptions& options, int64_t workers);
  void later(std::function<void()> work);
  DonateLimits limits() const;
  void read_messages();
  // Handles the message that has waited longest. False: none waits.
  bool read_message();
  std::shared_ptr<DonateModel> model() const;
  void mounted(std::shared_ptr<DonateModel> model);

  const DonateOptions options_;
  const std::shared_ptr<DonateAccount> account_;
  DonateJobs jobs_;
  std::unique_ptr<DonateListener> listener_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  std::shared_ptr<DonateModel> model_;
  bool stopping_ = false;
  std::thread reader_, messages_;
};

}  // namespace loom::core
