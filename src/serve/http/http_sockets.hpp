// HTTP over sockets that are open already, on the thread of the caller: for programs that accept
// connections or run loops themselves. HttpServer (http.hpp) listens.
#pragma once

#include <chrono>
#include <memory>

#include "serve/http/http.hpp"

namespace loom::core {

class HttpSockets {
 public:
  static std::unique_ptr<HttpSockets> create(const HttpLimits& limits, HttpHandler handler,
                                             HttpRefusal refusal = {});
  virtual ~HttpSockets() = default;
  // Takes ownership of a connected stream socket without TLS and serves it. Errors: io_error (not a
  // socket); the descriptor stays the caller's.
  virtual Status take(int descriptor) = 0;
  virtual int64_t connections() const = 0;
  // Handles one ready event, and waits up to `most` for it. Returns false if there was none. One
  // thread.
  virtual bool run_one(std::chrono::milliseconds most) = 0;
};

}  // namespace loom::core
