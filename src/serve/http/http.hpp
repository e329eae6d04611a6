// HTTP/1.1: connections, requests whole in memory, replies whole or in pieces. It is the only part
// of the server that listens. Boost.Beast does the parsing; only http.cpp includes it.
//
// One thread, that of run(), reads and writes. Handlers are called on it and must not wait. Longer
// work moves to another thread, which answers through the Reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loom/engine.hpp"
#include "loom/result.hpp"
#include "net/tls.hpp"

namespace loom::core {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // decoded, without the query: "/v1/models"
  std::string query;   // after the ?
  HttpHeaders headers;
  std::string body;
  // The value of a header, ignoring the case of its name; may be empty.
  std::string_view header(std::string_view name) const;
};

// The next piece of a body. An empty one ends it.
using HttpPieces = std::function<std::string()>;

// Answers one request, from any thread: send() or send_pieces() once, or begin(), write() as often
// as needed, end(). Calls after the connection was lost have no effect.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(int status, HttpHeaders headers, std::string body) = 0;
  virtual void begin(int status, HttpHeaders headers) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end() = 0;
  // The client disconnected, or reads so slowly that its buffer is full: the answer is not needed.
  virtual bool gone() const = 0;
  // The API key of the request, if the server requires one.
  virtual std::string_view caller() const { return {}; }
  // Adds a number to the request's log line; call it before the reply ends.
  virtual void report_field(const char* /*name*/, int64_t /*value*/) {}
  // Sends a body of `bytes`. The reading thread calls `next` when the piece before is written, so a
  // large body needs little memory. A body that ends early is cut, and its client sees it.
  virtual void send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next);
};

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

// The JSON for a request that is refused before it is read: it is not HTTP, or too large. `path` is
// empty if it is unknown.
using HttpRefusal =
    std::function<std::string(std::string_view path, int status, std::string_view message)>;

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 32 << 20;
  uint64_t all_bodies = 512 << 20;   // of all requests being read or answered
  std::optional<Engine> memory{};    // its memory limit covers bodies; 503 if it is used up
  uint64_t waiting_bytes = 4 << 20;  // unread bytes of a reply
  // Maximum at the same time. At the maximum, a new connection replaces one that is idle. That is
  // the peer that has been silent longest before its first request, or else one between requests.
  // If all are busy, the new one is closed.
  int64_t connections = 1024;
  std::chrono::milliseconds handshake_time{10000};  // of TLS
  std::chrono::milliseconds request_time{30000};    // from the first byte to the last
  std::chrono::milliseconds write_time{30000};      // for a piece of a reply
  std::chrono::milliseconds idle_time{75000};       // between requests
  uint32_t socket_mode = 0600;                      // mode of a Unix socket
};

class HttpServer {
 public:
  // Listens at `port` of `address`, an IPv4 or IPv6 number (port 0 means any free port), or at a
  // Unix socket, "unix:PATH". Without a `refusal`, errors have OpenAI's format. Errors:
  // invalid_argument (no such address), io_error (in use, not allowed), naming it.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, uint16_t port,
                                                    const HttpLimits& limits, HttpHandler handler,
                                                    HttpRefusal refusal = {});
  virtual ~HttpServer() = default;
  // Listens at the same port of another address too; call it before run(). Errors: as listen().
  virtual Status also(const std::string& address) = 0;
  // Encrypts new TCP connections with this context; from any thread. Unix sockets stay unencrypted.
  virtual void use_tls(TlsContext context) = 0;
  virtual uint16_t port() const = 0;
  virtual int64_t connections() const = 0;
  // Runs until stop().
  virtual void run() = 0;
  // Refuses new connections; open ones finish their replies. From any thread.
  virtual void refuse_more() = 0;
  // Sends finished replies within this time, then ends run(). From any thread.
  virtual void finish(std::chrono::milliseconds most) = 0;
  virtual void stop() = 0;
};

// The reason phrase of a status: "Not Found".
std::string_view http_reason(int status);

}  // namespace loom::core
