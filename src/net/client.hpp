// NetClient: a connection to a server over TCP, TLS or a Unix socket, with a limit on how long each
// call may take. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/tls.hpp"

namespace loom::core {

class NetClient {
 public:
  // To a port of a host (a name or a number), encrypted if `tls` is set, or to the Unix socket
  // "unix:PATH". Errors: not_found (no such host), invalid_argument (a path that is too long),
  // io_error (nobody answers in time; the certificate is not trusted; no TLS there).
  static Result<std::unique_ptr<NetClient>> connect(const std::string& host, uint16_t port,
                                                    const TlsContext& tls, double seconds);
  virtual ~NetClient() = default;
  // All bytes. Errors: io_error (closed, or not done in time).
  virtual Status send(std::string_view bytes, double seconds) = 0;
  // Would receive() return at once, within so many seconds? Bytes wait, or the end, or an error.
  virtual bool readable(double seconds) = 0;
  // Some bytes; none: the other side closed. Errors: io_error.
  virtual Result<std::string> receive(double seconds) = 0;
};

}  // namespace loom::core
