// Routes: which path is answered by whom. Each dialect adds its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/models.hpp"

namespace loom::core {

// A request on its way through a handler.
struct Call {
  Models& models;
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;
};

struct QueryField {
  std::string_view name;
  std::vector<std::string_view> values;  // that it may have; empty: any
  bool required = false;
};

struct Route {
  std::string method;
  std::string path;    // a * at its end stands for any rest
  bool quick = false;  // answered by the thread that reads, because it never computes
  std::function<void(const Call&)> handle;
  bool open = false;                // needs no key
  const Dialect* errors = nullptr;  // how errors before the handler are told; null: as OpenAI does
  std::string_view part{};          // what LlmServerOptions::without calls it
  std::function<JsonValue()> body{};  // of a POST: a JSON schema of what it reads
  std::vector<QueryField> query{};    // behind the ? of its address
  bool any_type = false;              // the body is JSON, whatever Content-Type says
};

using TextHandler = Status (*)(Service&, const JsonValue& body, const std::shared_ptr<HttpReply>&);
// A POST with a JSON object as its body, for the model that it names; an Error is told as `errors`
// does.
Route text_route(std::string path, TextHandler handler, const Dialect& errors,
                 std::function<JsonValue()> body = {});

// Likewise, with the request that it came by. An empty body is {} where `empty` says so.
using RequestHandler =
    std::function<Status(Service&, const HttpRequest& request, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply)>;
Route model_route(std::string path, RequestHandler handler, const Dialect& errors,
                  std::function<JsonValue()> body = {}, bool empty = false);

// A list of tokens; `name` is the field's. Errors: invalid_argument (one outside the vocabulary).
Result<std::vector<TokenId>> read_ids(const Service& service, const JsonValue& value,
                                      std::string_view name);
// A text, tokens, both in turn, or an object with a text. `reply`: as Service::tokenize() has it.
// Errors: invalid_argument, those of tokenizing.
Result<std::vector<TokenId>> read_prompt(const Service& service, const JsonValue& prompt,
                                         const HttpReply& reply);
// A text, a list of tokens, or a list of texts or lists. Errors: invalid_argument, naming `prompt`;
// those of tokenizing.
Result<std::vector<std::vector<TokenId>>> read_prompts(const Service& service,
                                                       const JsonValue& value,
                                                       const HttpReply& reply);

// The stop string that ended a text; empty if none did.
std::string stop_of(const Model& model, const Generation& text,
                    const std::vector<std::string>& stops);

const Dialect& openai_errors();
const Dialect& ollama_errors();
// POST /v1/chat/completions.
Status openai_chat(Service& service, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply);

// A GET about a model that is in memory: the one of ?model=NAME, or the first; an error where there
// is none.
using ModelHandler = void (*)(Service&, const std::shared_ptr<HttpReply>&);
std::function<void(const Call&)> about_model(ModelHandler handler);
// The value of a field of a query, decoded; "": it is not there.
std::string query_value(std::string_view query, std::string_view name);

// What /props tells of a model.
JsonValue props_of(const Service& service, bool asleep);

void add_openai(std::vector<Route>& routes);
void add_openai_models(std::vector<Route>& routes);  // called by add_openai()
void add_responses(std::vector<Route>& routes);
void add_anthropic(std::vector<Route>& routes);
void add_ollama(std::vector<Route>& routes);
void add_embeddings(std::vector<Route>& routes);  // of all of them, and ranks
void add_slots(std::vector<Route>& routes);       // states of sequences in files
void add_streams(std::vector<Route>& routes);     // taken up again
void add_page(std::vector<Route>& routes);        // a chat in the browser
void add_predict(std::vector<Route>& routes);     // chats in Google's envelope
void add_native(std::vector<Route>& routes);      // llama.cpp's own, health and metrics

}  // namespace loom::core
