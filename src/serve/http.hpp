// HTTP/1.1: connections, requests whole in memory, replies at once or in pieces. The only part of
// Loom that listens; Boost.Beast does the parsing, and http.cpp alone sees it.
//
// One thread, that of run(), reads and writes. Handlers are called there and must not wait: work
// goes to another thread, which answers through the Reply whenever it is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory_budget.hpp"
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
  // The value of a header, whatever the case of its name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

// Answers one request, from any thread: send() once, or begin(), write() as often as needed, end().
// What comes after the connection was lost is dropped.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(int status, HttpHeaders headers, std::string body) = 0;
  virtual void begin(int status, HttpHeaders headers) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end() = 0;
  // The client went away, or reads so slowly that too much waits for it: nobody needs the answer.
  virtual bool gone() const = 0;
  // The API key that the request carried, if the server asks for one.
  virtual std::string_view caller() const { return {}; }
  // For the log, before the reply ends: a number that the request is told with.
  virtual void tell(const char* /*name*/, int64_t /*value*/) {}
};

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

// The JSON for a request that is refused before it is read: it is not HTTP, or too large. `path` is
// empty if it is not known.
using HttpRefusal =
    std::function<std::string(std::string_view path, int status, std::string_view message)>;

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 32 << 20;
  uint64_t all_bodies = 512 << 20;   // of the requests that are read or answered at a time
  MemoryBudget memory{};             // that bodies are charged to; 503 if it is used up
  uint64_t waiting_bytes = 4 << 20;  // of a reply that a client does not read
  // At a time. If there are as many, the peer that has been silent longest before its first request
  // gives way to a new one, then one that is idle between requests. If all are served, the new one
  // is closed.
  int64_t connections = 1024;
  std::chrono::milliseconds handshake_time{10000};  // of TLS
  std::chrono::milliseconds request_time{30000};    // from its first byte to its last
  std::chrono::milliseconds write_time{30000};      // for a piece of a reply
  std::chrono::milliseconds idle_time{75000};       // between requests
  uint32_t socket_mode = 0600;                      // who may open a Unix socket
};

class HttpServer {
 public:
  // Listens at `port` of `address`, an IPv4 or IPv6 number (port 0: one that is free), or at a Unix
  // socket, "unix:PATH". Errors: invalid_argument (no such address), io_error (in use, not
  // allowed), naming it. Without a `refusal`, what OpenAI's clients read is sent.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, uint16_t port,
                                                    const HttpLimits& limits, HttpHandler handler,
                                                    HttpRefusal refusal = {});
  virtual ~HttpServer() = default;
  // Listens at the same port of another address as well; before run(). Errors: as listen().
  virtual Status also(const std::string& address) = 0;
  // New connections over TCP are encrypted from here on, with this context; from any thread. Unix
  // sockets are not.
  virtual void use_tls(TlsContext context) = 0;
  virtual uint16_t port() const = 0;
  virtual int64_t connections() const = 0;
  // Until stop().
  virtual void run() = 0;
  // From any thread: no new connections; those that are open finish their replies.
  virtual void refuse_more() = 0;
  // From any thread: what was answered goes out, if clients take it in this time; then run() ends.
  virtual void finish(std::chrono::milliseconds most) = 0;
  virtual void stop() = 0;
};

// A page of words for a status: "Not Found".
std::string_view http_reason(int status);

}  // namespace loom::core
