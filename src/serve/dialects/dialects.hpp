// Routes: the handler of each path. Each dialect adds its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/models.hpp"

namespace loom::core {

// A request in its handler.
struct Call {
  Models& models;
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;
};

struct QueryField {
  std::string_view name;
  std::vector<std::string_view> values;  // allowed values; empty means any
  bool required = false;
};

struct Route {
  std::string method;
  std::string path;    // a trailing * matches any rest
  bool quick = false;  // handled on the reading thread, because it never computes
  std::function<void(const Call&)> handle;
  bool open = false;                  // needs no key
  const Dialect* errors = nullptr;    // format of errors before the handler; null means OpenAI's
  std::string_view part{};            // name in LlmServerOptions::without
  std::function<JsonValue()> body{};  // of a POST: the JSON schema of its body
  std::vector<QueryField> query{};    // query parameters
  bool any_type = false;              // the body is JSON for any Content-Type
};

using TextHandler = Status (*)(Service&, const JsonValue& body, const std::shared_ptr<HttpReply>&);
// A POST with a JSON object as its body, for the model that it names. Errors have the format of
// `errors`.
Route text_route(std::string path, TextHandler handler, const Dialect& errors,
                 std::function<JsonValue()> body = {});

// The same, with the HTTP request. With `empty`, an empty body means {}.
using RequestHandler =
    std::function<Status(Service&, const HttpRequest& request, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply)>;
Route model_route(std::string path, RequestHandler handler, const Dialect& errors,
                  std::function<JsonValue()> body = {}, bool empty = false);

// A list of tokens; `name` is the field's name. Errors: invalid_argument (one outside the
// vocabulary).
Result<std::vector<TokenId>> read_ids(const Service& service, const JsonValue& value,
                                      std::string_view name);
// A text, tokens, both mixed, or an object with a text. `reply`: as in Service::tokenize(). Errors:
// invalid_argument, those of tokenizing.
Result<std::vector<TokenId>> read_prompt(const Service& service, const JsonValue& prompt,
                                         const HttpReply& reply);
// A text, a list of tokens, or a list of texts or lists. Errors: invalid_argument, naming `prompt`;
// those of tokenizing.
Result<std::vector<std::vector<TokenId>>> read_prompts(const Service& service,
                                                       const JsonValue& value,
                                                       const HttpReply& reply);

// The stop string that ended a text; may be empty.
std::string stop_of(const Model& model, const Generation& text,
                    const std::vector<std::string>& stops);

const Dialect& openai_errors();
const Dialect& ollama_errors();
// POST /v1/chat/completions.
Status openai_chat(Service& service, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply);

// A GET about a model in memory: that of ?model=NAME, or the first; an error if there is none.
using ModelHandler = void (*)(Service&, const std::shared_ptr<HttpReply>&);
std::function<void(const Call&)> about_model(ModelHandler handler);
// The decoded value of a query field; empty if it is absent.
std::string query_value(std::string_view query, std::string_view name);

// The reply of /props for a model.
JsonValue props_of(const Service& service, bool asleep);

void add_openai(std::vector<Route>& routes);
void add_openai_models(std::vector<Route>& routes);  // called by add_openai()
void add_responses(std::vector<Route>& routes);
void add_anthropic(std::vector<Route>& routes);
void add_ollama(std::vector<Route>& routes);
void add_embeddings(std::vector<Route>& routes);  // for all dialects, and reranking
void add_slots(std::vector<Route>& routes);       // sequence states in files
void add_streams(std::vector<Route>& routes);     // resumable streams
void add_page(std::vector<Route>& routes);        // the chat page
void add_predict(std::vector<Route>& routes);     // chats in Google's envelope
void add_native(std::vector<Route>& routes);      // llama.cpp's own routes, health and metrics

}  // namespace loom::core
