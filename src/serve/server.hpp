// LlmServer: a model at an address, for programs that speak the dialects of OpenAI, Anthropic,
// Ollama or llama.cpp. The same request gets the same bytes of text, whatever else is computed.
//
// Threads: one reads and writes connections and answers what needs no computing. A few read
// requests (JSON, templates, tokens): large ones have a thread of their own, so that small ones do
// not wait for them. One loads and unloads models; of each model one computes texts and one
// vectors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serve/dialects.hpp"
#include "serve/http.hpp"
#include "serve/models.hpp"
#include "serve/request_log.hpp"
#include "serve/service.hpp"

namespace loom::core {

struct LlmServerOptions {
  std::string address = "127.0.0.1";
  std::vector<std::string> more_addresses;  // at the same port
  int64_t port = 8080;                      // 0: one that is free
  std::vector<std::string> keys;   // one of which requests must carry; empty: none is asked for
  std::vector<std::string> hosts;  // names, besides numbers and localhost, by which it is called
  // Web pages that may ask; "*": all, "localhost": those of this machine, at any port.
  std::vector<std::string> origins;
  std::vector<std::string> without;  // parts that are not served: "page", "slots", "metrics"
  TlsContext tls{};                  // null: TCP is not encrypted
  HttpLimits http;
  ServiceOptions service;  // of one model; of several, of each
  int64_t models_most = 3, models_memory = 0, keep_seconds = 300;  // as in ModelsOptions
  int64_t sleep_seconds = -1;                                      // likewise
  LogLine log{};                                                   // none: nothing is logged
};

// What --memory allows, for HttpLimits::memory.
MemoryBudget budget_of(const Engine& engine);

class LlmServer {
 public:
  // Listens; requests are answered from here on. Errors: of the address and port, of the memory
  // for the sessions; invalid_argument (an address that others reach, without a key; defaults that
  // are no fields of requests).
  static Result<std::unique_ptr<LlmServer>> start(Model model, const LlmServerOptions& options);
  // Several, which are loaded when they are asked for; one alone is loaded now and stays.
  static Result<std::unique_ptr<LlmServer>> start(std::vector<ModelEntry> models,
                                                  const LlmServerOptions& options);
  ~LlmServer();

  // The OpenAPI document that a server with these options has at /openapi.json.
  static std::string openapi(const LlmServerOptions& options);

  // Answers a request as if it had come over a connection; from any thread.
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  uint16_t port() const { return http_->port(); }
  // For new connections, in the place of LlmServerOptions::tls.
  void use_tls(TlsContext context) { http_->use_tls(std::move(context)); }
  // Of the first model, which has to be in memory.
  const Service& service() const { return *models_->kept(); }
  Models& models() { return *models_; }
  // A large request is read now.
  bool busy_with_large() const { return large_.busy(); }
  // No new requests; waits until the texts under way are whole. False: they were not after so many
  // milliseconds, and end with an error in their streams when the server does.
  bool drain(int64_t milliseconds);

 private:
  explicit LlmServer(const LlmServerOptions& options) : options_(options) {}
  static Result<std::unique_ptr<LlmServer>> start(std::vector<ModelEntry> entries,
                                                  std::optional<Model> model,
                                                  const LlmServerOptions& options);
  bool may_pass(const HttpRequest& request, const Route& route, HttpReply& reply) const;
  bool good_host(const HttpRequest& request) const;
  bool good_origin(const HttpRequest& request) const;
  // The key of the server that the request carries, or null.
  const std::string* key_of(const HttpRequest& request) const;
  bool preflight(const HttpRequest& request, HttpReply& reply) const;
  Status leave_out(std::string_view part);
  void add_openapi();
  std::string refusal(std::string_view path, int status, std::string_view message) const;
  const Dialect& errors_at(std::string_view path) const;
  void answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  const LlmServerOptions options_;
  std::vector<Route> routes_;
  std::unique_ptr<Models> models_;  // before the replies that hold them
  std::unique_ptr<HttpServer> http_;
  // Requests wait in them, of which there are no more than connections.
  WorkQueue small_{SIZE_MAX, 2}, large_{SIZE_MAX, 1};
  std::thread reader_;
};

}  // namespace loom::core
