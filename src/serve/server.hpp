// LlmServer: serves models to clients of OpenAI, Anthropic, Ollama or llama.cpp. The same request
// gets the same text, whatever else is computed.
//
// Threads: one reads and writes connections and answers requests without computation. A few parse
// requests (JSON, templates, tokens); large requests have a separate thread, so that small ones do
// not wait for them. One loads and unloads models. Each model has one thread for texts and one for
// embeddings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serve/dialects/dialects.hpp"
#include "serve/http/http.hpp"
#include "serve/models.hpp"
#include "serve/request_log.hpp"
#include "serve/service.hpp"

namespace loom::core {

struct LlmServerOptions {
  std::string address = "127.0.0.1";
  std::vector<std::string> more_addresses;  // at the same port
  int64_t port = 8080;                      // 0 means any free port
  std::vector<std::string> keys;            // accepted API keys; empty means none is required
  std::vector<std::string> hosts;  // additional allowed host names, besides numbers and localhost
  // Web origins that may send requests; "*": all, "localhost": those of this machine, at any port.
  std::vector<std::string> origins;
  std::vector<std::string> without;  // disabled parts: "page", "slots", "metrics"
  std::string
      site{};        // a folder of static files in place of the page (static/site.hpp); empty: none
  TlsContext tls{};  // null means TCP is not encrypted
  HttpLimits http;
  ServiceOptions service;                                          // for each model
  int64_t models_most = 3, models_memory = 0, keep_seconds = 300;  // as in ModelsOptions
  LogLine log{};                                                   // null disables the log
};

class LlmServer {
 public:
  // Listens; from here on requests are answered. Errors: those of address and port, and of memory
  // for the sessions; invalid_argument (an address that is not loopback without a key; defaults
  // that are not request fields).
  static Result<std::unique_ptr<LlmServer>> start(Model model, const LlmServerOptions& options);
  // For several models, which are loaded on request; a single one is loaded now and stays. Without
  // models only the site is served, and needs no key.
  static Result<std::unique_ptr<LlmServer>> start(std::vector<ModelEntry> models,
                                                  const LlmServerOptions& options);
  ~LlmServer();

  // The OpenAPI document that such a server has at /openapi.json.
  static std::string openapi(const LlmServerOptions& options);

  // Handles a request as if from a connection; any thread.
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  uint16_t port() const { return http_->port(); }
  // Replaces LlmServerOptions::tls for new connections.
  void use_tls(TlsContext context) { http_->use_tls(std::move(context)); }
  // The service of the first model, which must be in memory.
  const Service& service() const { return *models_->kept(); }
  Models& models() { return *models_; }
  // Whether a large request is being read.
  bool busy_with_large() const { return large_.busy(); }
  // Refuses new requests and waits until running texts are complete. false: they were not after
  // this many milliseconds; they end with an error when the server does.
  bool drain(int64_t milliseconds);

 private:
  explicit LlmServer(const LlmServerOptions& options) : options_(options) {}
  static Result<std::unique_ptr<LlmServer>> start(std::vector<ModelEntry> entries,
                                                  std::optional<Model> model,
                                                  const LlmServerOptions& options);
  bool may_pass(const HttpRequest& request, const Route& route, HttpReply& reply) const;
  bool good_host(const HttpRequest& request) const;
  bool good_origin(const HttpRequest& request) const;
  // The server's key that the request carries, or null.
  const std::string* key_of(const HttpRequest& request) const;
  bool preflight(const HttpRequest& request, HttpReply& reply) const;
  Status leave_out(std::string_view part);
  void add_openapi();
  std::string refusal(std::string_view path, int status, std::string_view message) const;
  const Dialect& errors_at(std::string_view path) const;
  void answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  const LlmServerOptions options_;
  std::vector<Route> routes_;
  std::unique_ptr<Models> models_;  // must be declared before the replies that hold them
  std::unique_ptr<HttpServer> http_;
  // Their length is bounded by the number of connections.
  WorkQueue small_{SIZE_MAX, 2}, large_{SIZE_MAX, 1};
  std::thread reader_;
};

}  // namespace loom::core
