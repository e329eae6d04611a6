// NetStream: a connection over TCP or a Unix socket, encrypted from start_tls() on. It reads and
// writes like Boost.Asio's streams. Only servers and clients include it, because it includes Asio.
#pragma once

#include <boost/asio/buffer.hpp>
#if LOOM_TLS
#include <boost/asio/ssl/stream.hpp>
#endif

#include <memory>
#include <utility>

#include "net/acceptor.hpp"
#include "net/tls.hpp"

namespace loom::core {

class NetStream {
 public:
  using executor_type = NetSocket::executor_type;
  explicit NetStream(NetSocket socket) : socket_(std::move(socket)) {}
  NetStream(const NetStream&) = delete;
  NetStream& operator=(const NetStream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  // The socket below TLS: to close it, to cancel, to peek.
  NetSocket& socket() { return socket_; }

#if LOOM_TLS
  bool secure() const {
    return tls_ != nullptr;
  }
  // Call it before handshake(). False: out of memory.
  bool start_tls(const TlsContext& context) {
    SSL_CTX_up_ref(context.get());
    asio::ssl::context shared(context.get());  // one of two owners
    try {
      tls_ = std::make_unique<Tls>(socket_, shared);
    } catch (const boost::system::system_error&) {
    }
    return tls_ != nullptr;
  }
  ssl_st* session() {
    return tls_->native_handle();
  }
  // The handshake of a `server` or a client, before any data. Calls `handler`(error).
  template <class Handler>
  void handshake(bool server, Handler&& handler) {
    tls_->async_handshake(server ? Tls::server : Tls::client, std::forward<Handler>(handler));
  }
  // Ends the stream in a way that the other side can distinguish from a truncation. Calls
  // `handler`(error).
  template <class Handler>
  void end_tls(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  using Tls = asio::ssl::stream<NetSocket&>;
  NetSocket socket_;
  std::unique_ptr<Tls> tls_;
#else
  bool secure() const {
    return false;
  }
  bool start_tls(const TlsContext&) {
    return false;
  }
  ssl_st* session() {
    return nullptr;
  }
  template <class Handler>
  void handshake(bool, Handler&&) {}
  template <class Handler>
  void end_tls(Handler&&) {}
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  NetSocket socket_;
#endif
};

}  // namespace loom::core
