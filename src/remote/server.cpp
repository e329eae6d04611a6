#include "remote/server.hpp"

#include <utility>

#include "base/memory_budget.hpp"
#include "base/text.hpp"
#include "net/address.hpp"
#include "remote/peer.hpp"

namespace loom::core {
namespace {

// Maximum frame size before a client has proven the secret.
constexpr uint32_t kFirstFrame = 4096;

Status check_options(const DonateOptions& o) {
  if ((o.model == nullptr) == (o.mount == nullptr))
    return make_error(Code::internal, "a server has a model, or mounts one");
  if (!is_loopback(o.address) && o.secret.empty()) {
    return invalid(cat("others can reach ", printable(o.address),
                       ": give a secret with --secret-file, or listen at 127.0.0.1"));
  }
  if (!is_loopback(o.address) && o.tls == nullptr && !o.allow_plaintext) {
    return invalid(cat("what goes to ", printable(o.address),
                       " can be read on its way: give --tls-cert and --tls-key, or "
                       "--allow-plaintext"));
  }
  if (!o.secret.empty() && o.secret.size() < kDonateSecretLeast) {
    return invalid(
        cat("a secret of ", o.secret.size(), " bytes; it needs at least ", kDonateSecretLeast));
  }
  if (o.queue < 1 || o.workers < 1 || o.max_bytes < 1)
    return invalid("a server needs a worker, a place in its queue and a byte for models");
  return {};
}

}  // namespace

DonateServer::DonateServer(const DonateOptions& options, int64_t workers)
    : options_(options),
      account_(std::make_shared<DonateAccount>(options.max_bytes)),
      jobs_(static_cast<size_t>(options.queue), static_cast<size_t>(workers)),
      model_(options.model) {}

Result<std::unique_ptr<DonateServer>> DonateServer::start(const DonateOptions& options) {
  LOOM_TRY(check_options(options));
  std::unique_ptr<DonateServer> made(new DonateServer(options, options.workers));
  DonateServer* server = made.get();
  LOOM_ASSIGN(
      server->listener_,
      DonateListener::listen(options.address, static_cast<uint16_t>(options.port), server->limits(),
                             [server] { return std::make_shared<DonatePeer>(*server); }));
  server->use_tls(options.tls);
  server->messages_ = std::thread([server] { server->read_messages(); });
  server->reader_ = std::thread([server] { server->listener_->run(); });
  return made;
}

Result<std::unique_ptr<DonateServer>> DonateServer::create(const DonateOptions& options) {
  LOOM_TRY(check_options(options));
  std::unique_ptr<DonateServer> made(new DonateServer(options, 0));
  DonateServer* server = made.get();
  server->listener_ = DonateListener::create(
      server->limits(), [server] { return std::make_shared<DonatePeer>(*server); });
  return made;
}

DonateLimits DonateServer::limits() const {
  DonateLimits limits = options_.limits;
  if (!options_.secret.empty()) limits.first_frame = kFirstFrame;
  return limits;
}

DonateServer::~DonateServer() {
  stop(std::chrono::milliseconds(0));
}

// In this order: refuse new clients; end and answer jobs; stop reading; send the answers, if
// clients take them.
bool DonateServer::stop(std::chrono::milliseconds grace) {
  constexpr std::chrono::milliseconds kFarewell{1000};
  if (listener_ != nullptr) listener_->refuse_more();
  const bool in_time = jobs_.stop(grace);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (messages_.joinable()) messages_.join();
  if (reader_.joinable()) {
    listener_->stop(kFarewell);
    reader_.join();
  }
  works_.clear();
  return in_time;
}

void DonateServer::later(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    works_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void DonateServer::read_messages() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !works_.empty(); });
      if (stopping_) return;
    }
    read_message();
  }
}

bool DonateServer::read_message() {
  std::function<void()> next;
  {
    const std::lock_guard lock(mutex_);
    if (works_.empty()) return false;
    next = std::move(works_.front());
    works_.pop_front();
  }
  next();
  return true;
}

// Connections first, so that messages and jobs queue as they do with threads.
bool DonateServer::run_one(std::chrono::milliseconds most) {
  const std::chrono::milliseconds now(0);
  return listener_->run_one(now) || read_message() || jobs_.run_one(0) || listener_->run_one(most);
}

std::shared_ptr<DonateModel> DonateServer::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

void DonateServer::mounted(std::shared_ptr<DonateModel> model) {
  const std::lock_guard lock(mutex_);
  model_.swap(model);  // the argument destroys the previous model, after the lock
}

}  // namespace loom::core
