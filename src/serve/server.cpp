#include "serve/server.hpp"

#include <algorithm>

#include "base/memory_budget.hpp"
#include "base/text.hpp"
#include "io/files/mapped_watch.hpp"
#include "net/address.hpp"
#include "serve/dialects/fields.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/http/guard.hpp"
#include "serve/http/http_head.hpp"
#include "serve/http/http_reply.hpp"
#include "serve/model_files.hpp"
#include "serve/static/site.hpp"

namespace loom::core {
namespace {

bool matches(const Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (pattern.empty() || pattern.back() != '*') return pattern == path;
  return path.size() >= pattern.size() && path.starts_with(pattern.substr(0, pattern.size() - 1));
}

// Keeps the model in use until the reply is released.
class HoldingReply final : public ForwardingReply {
 public:
  HoldingReply(std::shared_ptr<HttpReply> reply, Models::Use use)
      : ForwardingReply(std::move(reply)), use_(std::move(use)) {}

 private:
  Models::Use use_;
};

// Adds the caller's key.
class ForCaller final : public ForwardingReply {
 public:
  ForCaller(std::shared_ptr<HttpReply> reply, std::string key)
      : ForwardingReply(std::move(reply)), key_(std::move(key)) {}
  std::string_view caller() const override { return key_; }

 private:
  const std::string key_;
};

// Adds CORS headers, so that a page of another origin can read the reply.
class ForOrigin final : public ForwardingReply {
 public:
  ForOrigin(std::shared_ptr<HttpReply> reply, std::string_view origin)
      : ForwardingReply(std::move(reply)), origin_(origin) {}
  void send(int status, HttpHeaders headers, std::string body) override {
    reply_->send(status, with_origin(std::move(headers)), std::move(body));
  }
  void send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next) override {
    reply_->send_pieces(status, with_origin(std::move(headers)), bytes, std::move(next));
  }
  void begin(int status, HttpHeaders headers) override {
    reply_->begin(status, with_origin(std::move(headers)));
  }

 private:
  HttpHeaders with_origin(HttpHeaders headers) const {
    headers.emplace_back("Access-Control-Allow-Origin", origin_);
    headers.emplace_back("Vary", "Origin");
    return headers;
  }
  const std::string origin_;
};

void refuse(HttpReply& reply, const Dialect& errors, int status, std::string_view type,
            std::string message, HttpHeaders headers = {}) {
  const Error error = make_error(Code::invalid_argument, std::move(message));
  send_json(reply, status, errors.error(status, type, error), std::move(headers));
}

void add_routes(std::vector<Route>& routes) {
  add_openai(routes);
  add_responses(routes);
  add_anthropic(routes);
  add_ollama(routes);
  add_embeddings(routes);
  add_predict(routes);
  add_native(routes);
  add_slots(routes);
  add_streams(routes);
  add_page(routes);
  for (Route& route : routes) route.any_type = route.path.starts_with("/api/");
}

// Header names, separated by commas.
bool is_header_list(std::string_view text) {
  constexpr size_t kMax = 2048;
  return !text.empty() && text.size() <= kMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ',' || c == ' ';
  });
}

std::string verbs_of(const std::vector<Route>& routes, std::string_view path) {
  std::vector<std::string> verbs;
  for (const Route& r : routes) {
    if (matches(r, path)) verbs.push_back(r.method);
  }
  return join(verbs, ", ");
}

// A body, and the memory of its values, charged to the budget.
struct ReadBody {
  MemoryReservation memory;
  JsonValue json;
};

// An upper bound of memory for parsing: a string is read twice, a value is 16 bytes and a member
// 48, in lists that double. parse_json() has the limit for hostile texts.
uint64_t parsing_bytes(std::string_view body) {
  const auto values = static_cast<uint64_t>(std::ranges::count_if(
      body, [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; }));
  const uint64_t size = body.size();
  return std::min(2 * size + 64 * values, (uint64_t{64} << 20) + 16 * size);
}

Result<std::shared_ptr<ReadBody>> read_body(const Call& call, bool empty) {
  auto out = std::make_shared<ReadBody>();
  const std::string& text = call.request.body;
  if (empty && text.empty()) {
    out->json = JsonValue::object();
    return out;
  }
  if (const std::optional<Engine>& engine = call.models.memory()) {
    Result<MemoryReservation> share = engine->reserve(parsing_bytes(text), "the body");
    if (!share.ok())
      return make_error(
          Code::out_of_memory,
          cat("the body needs more memory than --memory leaves (", size_text(engine->memory_left()),
              "); send less, or try again in a moment"));
    out->memory = std::move(*share);
  }
  LOOM_ASSIGN(out->json, parse_json(text, "the body"));
  if (!out->json.is_object())
    return invalid(cat("the body must be a JSON object; got ", out->json.describe()));
  return out;
}

}  // namespace

Route text_route(std::string path, TextHandler handler, const Dialect& errors,
                 std::function<JsonValue()> schema) {
  return model_route(
      std::move(path),
      [handler](Service& service, const HttpRequest&, const JsonValue& body,
                const std::shared_ptr<HttpReply>& reply) { return handler(service, body, reply); },
      errors, std::move(schema));
}

Route model_route(std::string path, RequestHandler handler, const Dialect& errors,
                  std::function<JsonValue()> schema, bool empty) {
  const auto handle = [handler = std::move(handler), &errors, empty](const Call& call) {
    const Result<std::shared_ptr<ReadBody>> body = read_body(call, empty);
    if (!body.ok()) return send_error(*call.reply, errors, body.error());
    const JsonValue* model = (*body)->json.find("model");
    if (model == nullptr && call.request.path.starts_with("/api/"))
      model = (*body)->json.find("name");
    auto about = std::make_shared<HttpRequest>();
    about->path = call.request.path;
    about->query = call.request.query;
    about->headers = call.request.headers;
    const auto then = [handler, &errors, body = *body, about,
                       reply = call.reply](Result<Models::Use> use) {
      if (!use.ok()) return send_error(*reply, errors, use.error());
      answer_guarded(reply, errors, [&] {
        const auto held = std::make_shared<HoldingReply>(reply, *use);
        const Status done = handler(**use, *about, body->json, held);
        if (!done.ok()) send_error(*held, errors, done.error());
      });
    };
    call.models.with(model != nullptr ? model->text() : std::string(), then,
                     [reply = call.reply] { return reply->gone(); });
  };
  return {"POST", std::move(path), false, handle, false, &errors, {}, std::move(schema)};
}

std::string query_value(std::string_view query, std::string_view name) {
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string_view field = query.substr(at, end - at);
    at = end + 1;
    if (!field.starts_with(name) || field.substr(name.size(), 1) != "=") continue;
    return percent_decoded(field.substr(name.size() + 1), true);
  }
  return {};
}

std::function<void(const Call&)> about_model(ModelHandler handler) {
  return [handler](const Call& call) {
    const std::string name = query_value(call.request.query, "model");
    Models::Use found;
    if (name.empty()) found = call.models.first_loaded();
    for (const Models::Row& row : call.models.list()) {
      const bool called = std::ranges::find(row.aliases, name) != row.aliases.end();
      if (!name.empty() && (row.name == name || called)) found = row.service;
    }
    if (found != nullptr) return handler(*found, call.reply);
    send_error(
        *call.reply, openai_errors(),
        make_error(Code::not_found, name.empty() ? "no model is in memory; a request loads one"
                                                 : cat(printable(name), " is not in memory")));
  };
}

Result<std::unique_ptr<LlmServer>> LlmServer::start(Model model, const LlmServerOptions& options) {
  std::vector<ModelEntry> one(1);
  one.front().name = options.service.name;
  return start(std::move(one), std::move(model), options);
}

Result<std::unique_ptr<LlmServer>> LlmServer::start(std::vector<ModelEntry> models,
                                                    const LlmServerOptions& options) {
  if (models.empty() && options.site.empty()) return invalid("there are no models to serve");
  return start(std::move(models), std::nullopt, options);
}

Result<std::unique_ptr<LlmServer>> LlmServer::start(std::vector<ModelEntry> entries,
                                                    std::optional<Model> model,
                                                    const LlmServerOptions& options) {
  std::vector<std::string> addresses = options.more_addresses;
  addresses.push_back(options.address);
  for (const std::string& address : addresses) {
    const bool needs_key = !entries.empty() && options.keys.empty();
    if (!is_number(address) || is_loopback(address) || !needs_key) continue;
    return invalid(cat("others can reach ", printable(address),
                       ": give keys with --api-key-file or LOOM_API_KEY, or listen at 127.0.0.1"));
  }
  std::unique_ptr<LlmServer> made(new LlmServer(options));
  LlmServer* server = made.get();
  if (!entries.empty()) {
    add_routes(server->routes_);
    server->add_openapi();
  }
  for (const std::string& part : options.without) LOOM_TRY(server->leave_out(part));
  if (!options.site.empty()) {
    std::erase_if(server->routes_, [](const Route& r) { return r.part == "page"; });
    LOOM_TRY(add_site(server->routes_, options.site));
  }
  guard_mapped_files();
  // Opens the port first: an error should appear before the model takes its memory.
  LOOM_ASSIGN(server->http_, HttpServer::listen(
                                 options.address, static_cast<uint16_t>(options.port), options.http,
                                 [server](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                                   server->handle(std::move(request), std::move(reply));
                                 },
                                 [server](std::string_view path, int status, std::string_view why) {
                                   return server->refusal(path, status, why);
                                 }));
  for (const std::string& address : options.more_addresses) LOOM_TRY(server->http_->also(address));
  server->http_->use_tls(options.tls);
  ModelsOptions models{options.service, options.models_most, options.models_memory,
                       options.keep_seconds, options.http.memory};
  server->models_ = Models::create(std::move(entries), models,
                                   [server](auto what) { server->small_.add(std::move(what)); });
  if (server->models_->single()) LOOM_TRY(server->models_->keep_first(std::move(model)));
  server->reader_ = std::thread([server] { server->http_->run(); });
  return made;
}

// In this order: texts end with an error, reading stops, then connections close.
LlmServer::~LlmServer() {
  if (models_ != nullptr) models_->begin_stop();
  small_.stop();
  large_.stop();
  if (models_ != nullptr) models_->stop();
  if (reader_.joinable()) {
    http_->finish(std::chrono::seconds(1));
    reader_.join();
  }
  http_.reset();
}

std::string LlmServer::openapi(const LlmServerOptions& options) {
  std::vector<Route> routes;
  add_routes(routes);
  return dump_json(openapi_of(routes, options.service.version));
}

void LlmServer::add_openapi() {
  routes_.push_back(
      {"GET", "/openapi.json", true, [](const Call& call) {
         LlmServerOptions options;
         options.service.version = call.models.options().service.version;
         call.reply->send(200, {{"Content-Type", "application/json"}}, openapi(options));
       }});
}

bool LlmServer::drain(int64_t milliseconds) {
  http_->refuse_more();
  return models_->drain(milliseconds);
}

// A disabled page does not exist; for other parts the reply says that they are disabled.
Status LlmServer::leave_out(std::string_view part) {
  if (std::ranges::none_of(routes_, [&](const Route& r) { return r.part == part; }))
    return invalid(
        cat("no part ", printable(part), " is served; leave out page, slots or metrics"));
  if (part == "page") std::erase_if(routes_, [&](const Route& r) { return r.part == part; });
  for (Route& route : routes_) {
    if (route.part != part) continue;
    route.handle = [](const Call& call) {
      refuse(*call.reply, openai_errors(), 501, "not_supported_error",
             cat(printable(call.request.path), " is switched off here (--without)"));
    };
  }
  return {};
}

// The error format of the route of a request; OpenAI's if there is none.
const Dialect& LlmServer::errors_at(std::string_view path) const {
  for (const Route& route : routes_) {
    if (route.errors != nullptr && matches(route, path)) return *route.errors;
  }
  return path.starts_with("/api/") ? ollama_errors() : openai_errors();
}

std::string LlmServer::refusal(std::string_view path, int status, std::string_view message) const {
  const std::string_view type = status == 503 ? "unavailable_error" : "invalid_request_error";
  return dump_json(errors_at(path).error(status, type,
                                         make_error(Code::invalid_argument, std::string(message))));
}

// Refuses host names that a web page could have pointed here (DNS rebinding).
bool LlmServer::good_host(const HttpRequest& request) const {
  const std::string host = host_name(request.header("Host"));
  return is_number(host) || host == "localhost" ||
         std::ranges::find(options_.hosts, host) != options_.hosts.end();
}

// Accepts Loom's own page; `Host` is already validated. Behind a proxy that ends TLS, the page is
// at https:// of the same host.
bool LlmServer::good_origin(const HttpRequest& request) const {
  const std::string_view origin = request.header("Origin");
  const std::string host = to_lower_ascii(request.header("Host"));
  if (origin == "http://" + host || origin == "https://" + host) return true;
  return std::ranges::any_of(options_.origins, [&](const std::string& o) {
    return o == "*" || o == origin || (o == "localhost" && is_local_page(origin));
  });
}

const std::string* LlmServer::key_of(const HttpRequest& request) const {
  std::string_view key = request.header("x-api-key");
  if (key.empty()) key = bearer_token(request.header("Authorization"));
  const std::string* found = nullptr;
  for (const std::string& one : options_.keys) found = same_secret(key, one) ? &one : found;
  return found;
}

// Answers the CORS preflight request of a browser for a page of another origin.
bool LlmServer::preflight(const HttpRequest& request, HttpReply& reply) const {
  const std::string_view origin = request.header("Origin");
  if (request.method != "OPTIONS" || origin.empty() || !good_origin(request)) return false;
  // Clients send their own headers (x-stainless-*, anthropic-version), none of which affects
  // access.
  std::string headers = "authorization, content-type, last-event-id, x-api-key";
  if (const std::string_view asked = request.header("Access-Control-Request-Headers");
      is_header_list(asked))
    headers = asked;
  reply.send(200,
             {{"Access-Control-Allow-Origin", std::string(origin)},
              {"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
              {"Access-Control-Allow-Headers", headers},
              {"Vary", "Origin, Access-Control-Request-Headers"},
              {"Access-Control-Max-Age", "600"}},
             {});
  return true;
}

bool LlmServer::may_pass(const HttpRequest& request, const Route& route, HttpReply& reply) const {
  const Dialect& errors = errors_at(request.path);
  if (!options_.keys.empty() && !route.open && key_of(request) == nullptr) {
    refuse(reply, errors, 401, "authentication_error",
           "a key is needed: send it as \"Authorization: Bearer KEY\"",
           {{"WWW-Authenticate", "Bearer"}});
    return false;
  }
  // Web pages can send other types without a preflight; good_origin() refuses those that are not
  // allowed. Ollama's clients send no type, or curl's default.
  if (request.method == "POST" && !route.any_type &&
      media_type(request.header("Content-Type")) != "application/json") {
    refuse(reply, errors, 415, "invalid_request_error",
           "the body must be JSON: send \"Content-Type: application/json\"");
    return false;
  }
  return true;
}

namespace {

// A model whose file bytes have changed computes nonsense. Unloading stays allowed.
bool refuse_changed_files(HttpReply& reply, const Dialect& errors) {
  const Status files = check_model_files();
  if (!files.ok()) send_error(reply, errors, files.error());
  return !files.ok();
}

}  // namespace

void LlmServer::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  const Dialect& errors = errors_at(request.path);
  answer_guarded(reply, errors, [&] { answer(std::move(request), reply); });
}

void LlmServer::answer(HttpRequest request, const std::shared_ptr<HttpReply>& to) {
  std::shared_ptr<HttpReply> reply = to;
  const Dialect& errors = errors_at(request.path);
  if (options_.log) reply = logged(std::move(reply), request, options_.log);
  if (!good_host(request)) {
    return refuse(*reply, errors, 403, "permission_error",
                  cat("this server is not called ", printable(request.header("Host")),
                      "; --allow-host lets it be"));
  }
  const std::string_view origin = request.header("Origin");
  if (!origin.empty() && !good_origin(request)) {
    return refuse(*reply, errors, 403, "permission_error",
                  cat("pages of ", printable(origin), " may not ask; --allow-origin lets them"));
  }
  if (preflight(request, *reply)) return;
  if (!origin.empty()) reply = std::make_shared<ForOrigin>(std::move(reply), origin);
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  const auto route = std::ranges::find_if(
      routes_, [&](const Route& r) { return r.method == method && matches(r, request.path); });
  if (route == routes_.end()) {
    const std::string verbs = verbs_of(routes_, request.path);
    if (verbs.empty()) {
      return refuse(*reply, errors, 404, "not_found_error",
                    cat("nothing is at ", printable(request.path), "; see loom serve --help"));
    }
    return refuse(*reply, errors, 405, "invalid_request_error",
                  cat(printable(request.path), " takes ", verbs), {{"Allow", verbs}});
  }
  if (!may_pass(request, *route, *reply)) return;
  if (const std::string* key = key_of(request))
    reply = std::make_shared<ForCaller>(std::move(reply), *key);
  if (route->method == "POST" && !request.path.starts_with("/models/") &&
      refuse_changed_files(*reply, errors))
    return;
  if (route->quick) return route->handle({*models_, request, reply});
  constexpr size_t kSmallBody = 64 << 10;
  WorkQueue& queue = request.body.size() <= kSmallBody ? small_ : large_;
  const auto taken = std::make_shared<HttpRequest>(std::move(request));
  const bool added = queue.add([this, &found = *route, &errors, taken, reply] {
    answer_guarded(reply, errors, [&] {
      if (!reply->gone()) found.handle({*models_, *taken, reply});
    });
  });
  if (!added) refuse(*reply, errors, 503, "unavailable_error", "the server stops");
}

}  // namespace loom::core
