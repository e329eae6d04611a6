// Absorbing over HTTP, for processes of this machine: accepts streams of models, and serves
// networks with their proofs. It listens on loopback addresses only, and every request needs the
// token. It stores files NAME.entity in one folder.
//
//   GET  /v2/health                      POST /v2/streams[?id=NAME]   the stream of docs/absorb.md
//   GET  /v2/streams/NAME/plan           POST /v2/runs                inputs, or the proof again
//   GET  /v2/compare/NAME/native/engine  GET  /v2/entities/NAME       the file
//
// Errors are one JSON object {code, message, path, hint}.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "loom/engine.hpp"
#include "loom/result.hpp"
#include "serve/http/http.hpp"
#include "serve/work_queue.hpp"

namespace loom::core {

inline constexpr int64_t kAbsorbPort = 9876;

struct AbsorbHostOptions {
  std::string folder;                 // for stored files; must exist
  std::string address = "127.0.0.1";  // loopback only
  int64_t port = kAbsorbPort;         // 0 means any free port
  HttpLimits http;                    // body_bytes: of a stream
  size_t queue = 16;                  // requests that wait
  std::string token;                  // empty means a new one of 64 digits
};

class AbsorbHost {
 public:
  // Errors: invalid_argument (an address that is not loopback), not_found (no such folder),
  // io_error.
  static Result<std::unique_ptr<AbsorbHost>> start(const Engine& engine,
                                                   const AbsorbHostOptions& options);
  // Waits for the running computation.
  ~AbsorbHost();
  uint16_t port() const { return http_->port(); }
  const std::string& token() const { return options_.token; }

 private:
  AbsorbHost(const Engine& engine, const AbsorbHostOptions& options)
      : engine_(engine), options_(options), work_(options.queue) {}
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply);
  bool may_ask(const HttpRequest& request, HttpReply& reply) const;

  Engine engine_;
  AbsorbHostOptions options_;
  std::unique_ptr<HttpServer> http_;
  WorkQueue work_;
  std::thread reader_;
};

// Whether a name is valid for a file: [A-Za-z0-9._-]{1,128}, without a leading dot.
bool is_entity_id(std::string_view id);

}  // namespace loom::core
