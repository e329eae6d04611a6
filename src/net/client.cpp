#include "net/client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "net/address.hpp"
#include "net/stream.hpp"

namespace loom::core {
namespace {

using Clock = std::chrono::steady_clock;
using Endpoints = std::vector<NetProtocol::endpoint>;

Result<Endpoints> endpoints_of(asio::io_context& io, const std::string& host, uint16_t port) {
  if (is_unix_address(host)) {
    LOOM_ASSIGN(const std::string path, unix_path(host));
    return Endpoints{asio::local::stream_protocol::endpoint(path)};
  }
  NetError failed;
  asio::ip::basic_resolver<asio::ip::tcp, NetExecutor> resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), failed);
  if (failed) return make_error(Code::not_found, cat("no such host: ", failed.message()), host);
  Endpoints out;
  for (const auto& one : found) out.emplace_back(one.endpoint());
  return out;
}

class Client final : public NetClient {
 public:
  explicit Client(std::string where)
      : where_(std::move(where)), stream_(NetSocket(io_)), piece_(64 << 10) {}
  ~Client() override {
    NetError ignored;
    stream_.socket().close(ignored);
    io_.restart();
    io_.poll();
  }

  Status open(const Endpoints& endpoints, double seconds) {
    for (const NetProtocol::endpoint& at : endpoints) {
      NetError ignored;
      stream_.socket().close(ignored);
      done_.reset();
      stream_.socket().async_connect(at, [this](const NetError& failed) { done_ = failed; });
      LOOM_TRY(wait(done_, seconds, "no answer"));
      if (!*done_) break;
    }
    if (!done_ || *done_) return fault(cat("no answer: ", done_ ? done_->message() : "no address"));
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), *done_);
    return {};
  }

  Status secure(const TlsContext& tls, const std::string& host, double seconds) {
    if (!stream_.start_tls(tls)) return make_error(Code::out_of_memory, "no memory for TLS");
    LOOM_TRY(tls_expect(stream_.session(), host));
    done_.reset();
    stream_.handshake(false, [this](const NetError& failed) { done_ = failed; });
    LOOM_TRY(wait(done_, seconds, "the server answers no TLS"));
    if (!*done_) return {};
    const std::string distrust = tls_distrust(stream_.session());
    if (distrust.empty()) return fault(cat("no TLS with this server: ", done_->message()));
    return fault(cat("the certificate of the server is not trusted: ", distrust,
                     "; --tls-ca names whom to trust"));
  }

  // Reading continues meanwhile: a server that stops reading may say why.
  Status send(std::string_view bytes, double seconds) override {
    done_.reset();
    asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()),
                      [this](const NetError& failed, size_t) { done_ = failed; });
    const Status in_time = wait(done_, seconds, "the other side took too long");
    if (!in_time.ok()) {
      // The caller owns the bytes: nothing may read them any more.
      NetError ignored;
      stream_.socket().close(ignored);
      io_.restart();
      while (!done_ && io_.run_one() > 0) continue;
      return in_time;
    }
    return *done_ ? Status(fault(done_->message())) : Status();
  }

  bool readable(double seconds) override {
    read();
    return wait(received_, seconds, {}).ok();
  }

  Result<std::string> receive(double seconds) override {
    read();
    LOOM_TRY(wait(received_, seconds, "the other side took too long"));
    const NetError failed = *received_;
    received_.reset();
    reading_ = false;
    if (failed && !is_end(failed)) return fault(reason(failed));
    return failed ? std::string() : std::string(piece_.data(), size_);
  }

 private:
  Error fault(std::string what) const {
    return make_error(Code::io_error, std::move(what), where_);
  }

  // Messages state their length, so a truncation is detected without TLS.
  static bool is_end(const NetError& failed) {
#if LOOM_TLS
    if (failed == asio::ssl::error::stream_truncated) return true;
#endif
    return failed == asio::error::eof;
  }

  // A server that requires a certificate says so after the handshake of TLS 1.3.
  std::string reason(const NetError& failed) const {
    const std::string why = failed.message();
    const bool asks = why.find("certificate required") != std::string::npos ||
                      why.find("handshake failure") != std::string::npos;
    return asks ? cat(why, "; --tls-cert and --tls-key show one") : why;
  }

  void read() {
    if (reading_) return;
    reading_ = true;
    received_.reset();
    stream_.async_read_some(asio::buffer(piece_), [this](const NetError& failed, size_t count) {
      size_ = count;
      received_ = failed;
    });
  }

  Status wait(const std::optional<NetError>& for_it, double seconds, std::string_view late) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::max(0.0, seconds)));
    io_.restart();
    io_.poll();
    while (!for_it && Clock::now() < end) {
      io_.restart();
      io_.run_one_until(end);
    }
    return for_it ? Status() : Status(fault(std::string(late)));
  }

  const std::string where_;
  asio::io_context io_{1};
  NetStream stream_;
  std::vector<char> piece_;
  size_t size_ = 0;
  std::optional<NetError> done_, received_;
  bool reading_ = false;
};

}  // namespace

Result<std::unique_ptr<NetClient>> NetClient::connect(const std::string& host, uint16_t port,
                                                      const TlsContext& tls, double seconds) {
  const bool local = is_unix_address(host);
  auto client = std::make_unique<Client>(local ? host : cat(host, ":", port));
  asio::io_context io;
  LOOM_ASSIGN(const Endpoints endpoints, endpoints_of(io, host, port));
  LOOM_TRY(client->open(endpoints, seconds));
  if (tls != nullptr && !local) LOOM_TRY(client->secure(tls, host, seconds));
  return std::unique_ptr<NetClient>(std::move(client));
}

}  // namespace loom::core
