// The shared base of servers: the types of Boost.Asio without its type-erased executors, and an
// acceptor for TCP and Unix sockets that survives a lack of descriptors. Only servers include it,
// because it includes Asio.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace loom::core {

namespace asio = boost::asio;
using NetExecutor = asio::io_context::executor_type;
using NetProtocol = asio::generic::stream_protocol;  // TCP or Unix
using NetSocket = asio::basic_stream_socket<NetProtocol, NetExecutor>;
using NetTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, NetExecutor>;
using NetError = boost::system::error_code;

// A connected stream socket of this process, which the result then owns. Errors: io_error (not a
// socket); the caller then keeps the descriptor.
Result<NetSocket> adopt_socket(asio::io_context& io, int descriptor);
// Runs one handler, and waits up to `most` for it. False if none was ready.
bool run_one_handler(asio::io_context& io, std::chrono::milliseconds most);

class NetAcceptor {
 public:
  explicit NetAcceptor(asio::io_context& io) : acceptor_(io), retry_(io) {}
  ~NetAcceptor() { remove_socket(); }
  NetAcceptor(const NetAcceptor&) = delete;
  NetAcceptor& operator=(const NetAcceptor&) = delete;

  // Listens at `port` of an IPv4 or IPv6 number (0 means a free port), or at "unix:PATH". A Unix
  // socket has the permissions `mode`. A leftover socket at PATH is replaced if no process listens
  // there; close() removes the file. Errors: invalid_argument (not an address, a path that is too
  // long), io_error (in use, not allowed), naming it.
  Status open(const std::string& address, uint16_t port, uint32_t mode = 0600);
  // Passes each new connection to `take`, until close(), on the thread that runs the context. If
  // `full`, or without free descriptors, `make_room` first closes another one. If it returns false,
  // the newest is closed.
  void accept(std::function<bool()> full, std::function<bool()> make_room,
              std::function<void(NetSocket)> take);
  void close();
  bool is_open() const { return acceptor_.is_open(); }
  bool is_unix() const { return !path_.empty(); }
  uint16_t port() const { return port_; }  // of TCP

 private:
  Status open_tcp(const std::string& address, uint16_t port);
  Status open_unix(const std::string& address, uint32_t mode);
  void remove_socket();
  void accept_next();
  void accept_later();

  asio::basic_socket_acceptor<NetProtocol, NetExecutor> acceptor_;
  NetTimer retry_;
  std::function<bool()> full_, make_room_;
  std::function<void(NetSocket)> take_;
  uint16_t port_ = 0;
  std::string path_;                           // of a Unix socket
  std::filesystem::file_time_type path_time_;  // identifies the file as ours
};

}  // namespace loom::core
