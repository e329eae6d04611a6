#include "net/tcp.hpp"

#include <utility>

#include "base/text.hpp"
#include "base/try_again.hpp"
#include "net/address.hpp"

namespace loom::core {

Status TcpAcceptor::open(const std::string& address, uint16_t port) {
  TcpError failed;
  const asio::ip::address number = asio::ip::make_address(address, failed);
  if (failed) {
    return make_error(Code::invalid_argument,
                      cat("no IPv4 or IPv6 number: ", printable(address),
                          "; take 127.0.0.1 for this machine alone, 0.0.0.0 for all"));
  }
  const asio::ip::tcp::endpoint at(number, port);
  acceptor_.open(at.protocol(), failed);
  if (!failed) acceptor_.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor_.bind(at, failed);
  if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) {
    return make_error(Code::io_error,
                      cat("cannot listen at ", address, " port ", port, ": ", failed.message()));
  }
  port_ = acceptor_.local_endpoint(failed).port();
  return {};
}

void TcpAcceptor::accept(std::function<bool()> full, std::function<bool()> make_room,
                         std::function<void(TcpSocket)> take) {
  full_ = std::move(full);
  make_room_ = std::move(make_room);
  take_ = std::move(take);
  accept_next();
}

void TcpAcceptor::accept_next() {
  acceptor_.async_accept([this](const TcpError& failed, TcpSocket socket) {
    if (!acceptor_.is_open()) return;
    if (!failed && (!full_() || make_room_())) {
      TcpError ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      try {
        take_(std::move(socket));
      } catch (const std::bad_alloc&) {
        // The socket is closed. The next connection may find memory.
      }
    }
    const bool again = !failed || failed == asio::error::connection_aborted ||
                       (failed == asio::error::no_descriptors && make_room_());
    if (again && try_again([this] { accept_next(); })) return;
    // The system is short of descriptors or memory. Accepting again at once would spin.
    try_again([this] { accept_later(); });
  });
}

void TcpAcceptor::accept_later() {
  retry_.expires_after(std::chrono::milliseconds(100));
  retry_.async_wait([this](const TcpError& cancelled) {
    if (cancelled || !acceptor_.is_open()) return;
    if (!try_again([this] { accept_next(); })) try_again([this] { accept_later(); });
  });
}

void TcpAcceptor::close() {
  TcpError ignored;
  acceptor_.close(ignored);
  retry_.cancel();
}

bool is_loopback(std::string_view address) {
  TcpError failed;
  const asio::ip::address number = asio::ip::make_address(address, failed);
  if (failed) return false;
  if (number.is_v6() && number.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, number.to_v6()).is_loopback();
  return number.is_loopback();
}

}  // namespace loom::core
