// NetClient: a connection to a server over TCP, TLS or a Unix socket, with a time limit for each
// call. One thread at a time.
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
  // Connects to a port of a host (a name or a number), encrypted if `tls` is set, or to the Unix
  // socket "unix:PATH". Errors: not_found (no such host), invalid_argument (a path that is too
  // long), io_error (no answer in time; an untrusted certificate; no TLS there).
  static Result<std::unique_ptr<NetClient>> connect(const std::string& host, uint16_t port,
                                                    const TlsContext& tls, double seconds);
  virtual ~NetClient() = default;
  // Sends all bytes. Errors: io_error (closed, or out of time).
  virtual Status send(std::string_view bytes, double seconds) = 0;
  // Whether receive() would return at once, within `seconds`: bytes, the end, or an error.
  virtual bool readable(double seconds) = 0;
  // Some bytes; none if the other side closed. Errors: io_error.
  virtual Result<std::string> receive(double seconds) = 0;
};

}  // namespace loom::core
