#include "net/acceptor.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "base/threads/try_again.hpp"
#include "net/address.hpp"
#include "net/unix_socket.hpp"

namespace loom::core {

namespace {

uint16_t port_of(const NetProtocol::endpoint& at) {
  asio::ip::tcp::endpoint out;
  if (at.size() > out.capacity()) return 0;
  std::memcpy(out.data(), at.data(), at.size());
  return out.port();
}

}  // namespace

Result<NetSocket> adopt_socket(asio::io_context& io, int descriptor) {
  NetSocket socket(io);
  NetError failed;
  socket.assign(NetProtocol(AF_UNIX, 0), descriptor, failed);
  if (failed) return make_error(Code::io_error, cat("no socket to serve: ", failed.message()));
  return socket;
}

bool run_one_handler(asio::io_context& io, std::chrono::milliseconds most) {
  if (io.stopped()) io.restart();
  return (most.count() > 0 ? io.run_one_for(most) : io.poll_one()) > 0;
}

Status NetAcceptor::open(const std::string& address, uint16_t port, uint32_t mode) {
  return is_unix_address(address) ? open_unix(address, mode) : open_tcp(address, port);
}

Status NetAcceptor::open_tcp(const std::string& address, uint16_t port) {
  NetError failed;
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
  port_ = port_of(acceptor_.local_endpoint(failed));
  return {};
}

// Clients cannot connect between bind() and listen(), so the permissions are set before any can.
Status NetAcceptor::open_unix(const std::string& address, uint32_t mode) {
  LOOM_ASSIGN(const std::string path, unix_path(address));
  LOOM_TRY(remove_stale_socket(path));
  NetError failed;
  const asio::local::stream_protocol::endpoint at(path);
  acceptor_.open(at.protocol(), failed);
  if (!failed) acceptor_.bind(at, failed);
  if (!failed) {
    path_ = path;
    std::error_code bad;
    path_time_ = std::filesystem::last_write_time(path, bad);
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode & 0777), bad);
    if (bad) failed = bad;
  }
  if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) return {};
  remove_socket();
  return make_error(Code::io_error, cat("cannot listen there: ", failed.message()), path);
}

// By now the path may be the socket of another process.
void NetAcceptor::remove_socket() {
  const std::string path = std::exchange(path_, {});
  std::error_code bad;
  if (path.empty() || std::filesystem::last_write_time(path, bad) != path_time_ || bad) return;
  std::filesystem::remove(path, bad);
}

void NetAcceptor::accept(std::function<bool()> full, std::function<bool()> make_room,
                         std::function<void(NetSocket)> take) {
  full_ = std::move(full);
  make_room_ = std::move(make_room);
  take_ = std::move(take);
  accept_next();
}

void NetAcceptor::accept_next() {
  acceptor_.async_accept([this](const NetError& failed, NetSocket socket) {
    if (!acceptor_.is_open()) return;
    if (!failed && (!full_() || make_room_())) {
      NetError ignored;
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
    // The system lacks descriptors or memory. Accepting again at once would spin.
    try_again([this] { accept_later(); });
  });
}

void NetAcceptor::accept_later() {
  retry_.expires_after(std::chrono::milliseconds(100));
  retry_.async_wait([this](const NetError& cancelled) {
    if (cancelled || !acceptor_.is_open()) return;
    if (!try_again([this] { accept_next(); })) try_again([this] { accept_later(); });
  });
}

void NetAcceptor::close() {
  NetError ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  remove_socket();
}

bool is_loopback(std::string_view address) {
  if (is_unix_address(address)) return true;
  NetError failed;
  const asio::ip::address number = asio::ip::make_address(address, failed);
  if (failed) return false;
  if (number.is_v6() && number.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, number.to_v6()).is_loopback();
  return number.is_loopback();
}

}  // namespace loom::core
