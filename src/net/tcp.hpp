// What servers on TCP share: the types of Boost.Asio without its type-erased executors, and an
// acceptor that survives a lack of descriptors. Included by what listens alone: it brings Asio.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace loom::core {

namespace asio = boost::asio;
using TcpExecutor = asio::io_context::executor_type;
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, TcpExecutor>;
using TcpTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, TcpExecutor>;
using TcpError = boost::system::error_code;

class TcpAcceptor {
 public:
  explicit TcpAcceptor(asio::io_context& io) : acceptor_(io), retry_(io) {}

  // Listens at `port` of `address`, an IPv4 or IPv6 number; port 0: one that is free. Errors:
  // invalid_argument (no such address), io_error, naming it.
  Status open(const std::string& address, uint16_t port);
  // Passes each new connection to `take`, until close(), on the thread that runs the context. If
  // `full`, or without free descriptors, `make_room` closes another one first; if it returns false,
  // the newest is closed.
  void accept(std::function<bool()> full, std::function<bool()> make_room,
              std::function<void(TcpSocket)> take);
  void close();
  bool is_open() const { return acceptor_.is_open(); }
  uint16_t port() const { return port_; }

 private:
  void accept_next();
  void accept_later();

  asio::basic_socket_acceptor<asio::ip::tcp, TcpExecutor> acceptor_;
  TcpTimer retry_;
  std::function<bool()> full_, make_room_;
  std::function<void(TcpSocket)> take_;
  uint16_t port_ = 0;
};

}  // namespace loom::core
