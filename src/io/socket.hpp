// Client sockets: a connection or a stream of datagrams to an address, with a time limit for each
// call. Nothing here listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port", "[::1]:80", or "host" if `default_port` is above 0. Errors: invalid_argument.
Result<HostPort> parse_host_port(std::string_view text, int default_port = 0);

enum class SocketKind : uint8_t { stream, datagram };

class Socket {
 public:
  // Errors: not_found (no such host), io_error (no answer in time), unsupported (a system without
  // sockets).
  static Result<Socket> connect(SocketKind kind, const HostPort& to, double seconds);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Sends all bytes. Errors: io_error (closed, or out of time).
  Status send(std::string_view bytes, double seconds);
  // Whether receive() would return at once, within `seconds`: bytes, the end, or an error.
  bool readable(double seconds) const { return wait(false, seconds).ok(); }
  // Some bytes, at most `most`; none if the other side closed. Errors: io_error.
  Result<std::string> receive(size_t most, double seconds);

 private:
  explicit Socket(int handle) : handle_(handle) {}
  Status wait(bool to_write, double seconds) const;
  int handle_ = -1;
};

}  // namespace loom::core
