// Embeddings and reranking over HTTP: /v1/embeddings of OpenAI, /api/embed and /api/embeddings of
// Ollama, /embedding and /rerank of llama.cpp. /rerank has the form of Jina and Cohere, or with
// `texts` that of TEI. Any model computes embeddings; one with a head of one label ranks. The
// reading thread validates requests. Another thread computes them one by one.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "io/bytes/base64.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/text_fields.hpp"
#include "serve/model_files.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxTexts = 2048;  // per request, as in OpenAI's API

struct VectorRequest {
  const JsonValue* input = nullptr;
  EmbedOptions options;
  std::string format = "float";
  int64_t length = 2;  // embd_normalize of llama.cpp
  std::optional<int64_t> keep_alive;
};
using VectorField = BodyField<VectorRequest>;

VectorField input_field(std::string_view name) {
  return json_field(name, &VectorRequest::input);
}

VectorField option_text(std::string_view name, std::string EmbedOptions::*where) {
  return {name, [where](const JsonValue& v, std::string_view called, VectorRequest& r) {
            return take_text(v, called, r.options.*where);
          }};
}

const VectorField kDimensions = {"dimensions",
                                 [](const JsonValue& v, std::string_view name, VectorRequest& r) {
                                   return take_int(v, name, 1, 1 << 24, r.options.dimensions);
                                 }};
const VectorField kTruncate = {"truncate",
                               [](const JsonValue& v, std::string_view name, VectorRequest& r) {
                                 return take_bool(v, name, r.options.truncate);
                               }};

// Texts or lists of tokens: one, or a list of them.
struct Inputs {
  std::vector<std::string> texts;
  std::vector<std::vector<TokenId>> ids;
  size_t size() const { return texts.size() + ids.size(); }
};

// If texts are mixed with tokens, or are in objects, all become tokens.
Status read_input(const Service& service, const JsonValue& one, const HttpReply& reply,
                  Inputs& to) {
  if (one.is_string() && to.ids.empty()) {
    to.texts.push_back(one.text());
    return {};
  }
  if (!one.is_string() && !one.is_array() && !one.is_object())
    return invalid(cat("input may hold texts or lists of tokens; got ", one.describe()));
  for (const std::string& text : std::exchange(to.texts, {})) {
    LOOM_ASSIGN(std::vector<TokenId> ids, service.tokenize(text, reply));
    to.ids.push_back(std::move(ids));
  }
  LOOM_ASSIGN(std::vector<TokenId> ids, read_prompt(service, one, reply));
  to.ids.push_back(std::move(ids));
  return {};
}

Result<Inputs> read_inputs(const Service& service, const JsonValue* value, const HttpReply& reply) {
  if (value == nullptr) return invalid("input is missing: a text, tokens, or a list of them");
  Inputs inputs;
  const std::vector<JsonValue>& parts = value->elements();
  const bool tokens = std::ranges::any_of(parts, [](auto& part) { return part.is_number(); });
  if (value->is_string() || value->is_object() || tokens) {
    LOOM_TRY(read_input(service, *value, reply, inputs));
    return inputs;
  }
  if (parts.empty() || parts.size() > kMaxTexts) {
    return invalid(cat("input must be a text, a list of tokens, or a list of 1 to ", kMaxTexts,
                       " of them; got ", value->describe()));
  }
  for (const JsonValue& one : parts) LOOM_TRY(read_input(service, one, reply, inputs));
  return inputs;
}

using Vectors = std::vector<TextEmbedding>;
using ReportFn = std::function<JsonValue(const Vectors& found, double seconds)>;

// Refuses results if a model file has changed.
void send_result(HttpReply& reply, const Dialect& errors, const Result<JsonValue>& result) {
  const Status files = check_model_files();
  if (!files.ok()) return send_error(reply, errors, files.error());
  if (result.ok()) return send_json(reply, 200, *result);
  send_error(reply, errors, result.error());
}

Error full() {
  return busy("the server is busy: as many requests wait as may; try again in a moment");
}

// Computes the embeddings of a request; `tell` formats the result.
Status compute(Service& service, VectorRequest request, const std::shared_ptr<HttpReply>& reply,
               const Dialect& errors, ReportFn report_field) {
  LOOM_ASSIGN(Inputs inputs, read_inputs(service, request.input, *reply));
  for (const std::string& text : inputs.texts)
    LOOM_TRY(service.check_text(text, kMaxDocumentBytes));
  request.input = nullptr;  // frees the body
  EmbedOptions options = std::move(request.options);
  options.progress = [&service, reply](int64_t, int64_t) {
    return !reply->gone() && !service.stopping();
  };
  const auto work = [&service, reply, &errors, report_field = std::move(report_field),
                     inputs = std::move(inputs), options = std::move(options)] {
    const auto begin = std::chrono::steady_clock::now();
    const Model& model = service.model();
    const Result<Vectors> found = inputs.texts.empty() ? model.embed_tokens(inputs.ids, options)
                                                       : model.embed(inputs.texts, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    send_result(*reply, errors,
                found.ok() ? Result<JsonValue>(report_field(*found, took.count()))
                           : Result<JsonValue>(found.error()));
  };
  const bool taken = service.compute(
      [reply, &errors, work = std::move(work)] { answer_guarded(reply, errors, work); });
  return taken ? Status() : Status(full());
}

JsonValue numbers(const std::vector<float>& values) {
  JsonValue out = JsonValue::array();
  for (const float value : values) out.push(JsonValue::real(static_cast<double>(value)));
  return out;
}

// The vector as little-endian float32.
std::string packed_vector(const std::vector<float>& values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);
  }
  return encode_base64(bytes);
}

int64_t tokens_of(const std::vector<TextEmbedding>& found) {
  int64_t sum = 0;
  for (const TextEmbedding& one : found) sum += one.tokens;
  return sum;
}

JsonValue usage_of(int64_t tokens) {
  return object("prompt_tokens", tokens, "total_tokens", tokens);
}

const std::vector<VectorField>& openai_embeddings_fields() {
  static const std::vector<VectorField> fields = {
      input_field("input"),
      string_field("encoding_format", &VectorRequest::format),
      kDimensions,
      option_text("prompt_name", &EmbedOptions::prompt_name),
      ignored_field<VectorRequest>("model"),
      ignored_field<VectorRequest>("user")};
  return fields;
}

Status openai_embeddings(Service& service, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply) {
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, openai_embeddings_fields(), service.strict(), request));
  if (request.format != "float" && request.format != "base64")
    return invalid(cat("encoding_format must be \"float\" or \"base64\"; got \"",
                       printable(request.format), "\""));
  const bool plain = request.format == "float";
  const auto report_field = [plain, &service](const Vectors& found, double) {
    JsonValue data = JsonValue::array();
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<float>& values = found[i].values;
      data.push(object("object", "embedding", "index", i, "embedding",
                       plain ? numbers(values) : JsonValue::string(packed_vector(values))));
    }
    return object("object", "list", "data", std::move(data), "model",
                  std::string_view(service.name()), "usage", usage_of(tokens_of(found)));
  };
  return compute(service, std::move(request), reply, openai_errors(), report_field);
}

// Handled while the fields are read.
const VectorField kKeepAlive = {"keep_alive",
                                [](const JsonValue& v, std::string_view name, VectorRequest& r) {
                                  const Result<int64_t> seconds = read_keep_alive(v, name);
                                  if (seconds.ok()) r.keep_alive = *seconds;
                                  return seconds.ok() ? Status() : Status(seconds.error());
                                }};

// Times in nanoseconds, as in Ollama.
const std::vector<VectorField>& ollama_embed_fields() {
  static const std::vector<VectorField> fields = {
      input_field("input"), kTruncate,
      kDimensions,          ignored_field<VectorRequest>("model"),
      kKeepAlive,           ignored_field<VectorRequest>("options")};
  return fields;
}

Status ollama_embed(Service& service, const JsonValue& body,
                    const std::shared_ptr<HttpReply>& reply) {
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, ollama_embed_fields(), service.strict(), request));
  if (request.keep_alive) service.keep_alive(*request.keep_alive);
  const auto report_field = [&service](const Vectors& found, double seconds) {
    JsonValue rows = JsonValue::array();
    for (const TextEmbedding& one : found) rows.push(numbers(one.values));
    return object("model", std::string_view(service.name()), "embeddings", std::move(rows),
                  "total_duration", static_cast<int64_t>(seconds * 1e9), "load_duration", 0,
                  "prompt_eval_count", tokens_of(found));
  };
  return compute(service, std::move(request), reply, ollama_errors(), report_field);
}

const std::vector<VectorField>& ollama_embeddings_fields() {
  static const std::vector<VectorField> fields = {input_field("prompt"),
                                                  ignored_field<VectorRequest>("model"), kKeepAlive,
                                                  ignored_field<VectorRequest>("options")};
  return fields;
}

Status ollama_embeddings(Service& service, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply) {
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, ollama_embeddings_fields(), service.strict(), request));
  if (request.input != nullptr && !request.input->is_string())
    return invalid(cat("prompt must be a text; got ", request.input->describe()));
  if (request.keep_alive) service.keep_alive(*request.keep_alive);
  return compute(service, std::move(request), reply, ollama_errors(),
                 [](const Vectors& found, double) {
                   return object("embedding", numbers(found.front().values));
                 });
}

// llama.cpp's format: a list of vectors for each text, one or one per token.
const std::vector<VectorField>& native_embedding_fields() {
  static const std::vector<VectorField> fields = {
      input_field("content"),
      input_field("input"),
      {"embd_normalize", [](const JsonValue& v, std::string_view name, VectorRequest& r) -> Status {
         LOOM_TRY(take_int(v, name, -1, 2, r.length));
         if (r.length != -1 && r.length != 2)
           return unsupported(
               cat(name, " ", r.length, " is not supported; 2 (length 1) and -1 are"));
         r.options.normalize = r.length == 2;
         return {};
       }}};
  return fields;
}

Status native_embedding(Service& service, const JsonValue& body,
                        const std::shared_ptr<HttpReply>& reply) {
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, native_embedding_fields(), service.strict(), request));
  const auto report_field = [](const Vectors& found, double) {
    JsonValue out = JsonValue::array();
    for (size_t i = 0; i < found.size(); ++i)
      out.push(object("index", i, "embedding", list(numbers(found[i].values))));
    return out;
  };
  return compute(service, std::move(request), reply, openai_errors(), report_field);
}

struct RankRequest {
  std::string query;
  const JsonValue* documents = nullptr;
  const JsonValue* texts = nullptr;  // documents; the reply is then only a list
  int64_t top = 0;
  bool with_documents = false;
};

// A document is a text, or an object with a text.
Result<std::vector<std::string>> read_documents(const JsonValue* value) {
  if (value == nullptr || value->elements().empty() || value->elements().size() > kMaxTexts)
    return invalid(cat("documents must be a list of 1 to ", kMaxTexts, " texts"));
  std::vector<std::string> out;
  for (const JsonValue& one : value->elements()) {
    const JsonValue* text = one.is_object() ? one.find("text") : &one;
    if (text == nullptr || !text->is_string())
      return invalid(cat("documents may hold texts; got ", one.describe()));
    out.push_back(text->text());
  }
  return out;
}

const std::vector<BodyField<RankRequest>>& rank_fields() {
  static const std::vector<BodyField<RankRequest>> fields = {
      string_field("query", &RankRequest::query),
      json_field("documents", &RankRequest::documents),
      json_field("texts", &RankRequest::texts),
      {"top_n", [](const JsonValue& v, std::string_view name,
                   RankRequest& r) { return take_int(v, name, 1, 1 << 24, r.top); }},
      bool_field("return_documents", &RankRequest::with_documents),
      ignored_field<RankRequest>("model")};
  return fields;
}

Status rank(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  RankRequest request;
  LOOM_TRY(take_fields<RankRequest>(body, rank_fields(), service.strict(), request));
  if (request.query.empty()) return invalid("query is missing: a text");
  const bool list_alone = request.documents == nullptr && request.texts != nullptr;
  LOOM_ASSIGN(std::vector<std::string> documents,
              read_documents(list_alone ? request.texts : request.documents));
  LOOM_TRY(service.check_text(request.query, kMaxDocumentBytes));
  for (const std::string& one : documents) LOOM_TRY(service.check_text(one, kMaxDocumentBytes));
  const auto work = [&service, reply, list_alone, query = request.query, top = request.top,
                     with = request.with_documents, documents = std::move(documents)] {
    RerankOptions options;
    options.progress = [&](int64_t, int64_t) { return !reply->gone() && !service.stopping(); };
    const Result<std::vector<Ranked>> ranked = service.model().rerank(query, documents, options);
    if (!ranked.ok()) return send_error(*reply, openai_errors(), ranked.error());
    int64_t tokens = 0;
    JsonValue results = JsonValue::array();
    for (const Ranked& one : *ranked) {
      tokens += one.tokens;
      if (top > 0 && static_cast<int64_t>(results.elements().size()) >= top) continue;
      JsonValue row = object("index", one.index, list_alone ? "score" : "relevance_score",
                             static_cast<double>(one.score));
      const std::string& text = documents[static_cast<size_t>(one.index)];
      if (with && list_alone) row.add("text", json(text));
      if (with && !list_alone) row.add("document", object("text", std::string_view(text)));
      results.push(std::move(row));
    }
    if (!list_alone)
      results = object("model", std::string_view(service.name()), "object", "list", "usage",
                       usage_of(tokens), "results", std::move(results));
    send_result(*reply, openai_errors(), std::move(results));
  };
  const bool taken = service.compute(
      [reply, work = std::move(work)] { answer_guarded(reply, openai_errors(), work); });
  return taken ? Status() : Status(full());
}

template <const std::vector<VectorField>& (*Table)()>
JsonValue schema() {
  return schema_of<VectorRequest>(Table());
}

}  // namespace

void add_embeddings(std::vector<Route>& routes) {
  routes.push_back(text_route("/v1/embeddings", openai_embeddings, openai_errors(),
                              schema<openai_embeddings_fields>));
  routes.push_back(
      text_route("/api/embed", ollama_embed, ollama_errors(), schema<ollama_embed_fields>));
  routes.push_back(text_route("/api/embeddings", ollama_embeddings, ollama_errors(),
                              schema<ollama_embeddings_fields>));
  for (const char* path : {"/embedding", "/embeddings"})
    routes.push_back(
        text_route(path, native_embedding, openai_errors(), schema<native_embedding_fields>));
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"})
    routes.push_back(text_route(path, rank, openai_errors(),
                                [] { return schema_of<RankRequest>(rank_fields()); }));
}

}  // namespace loom::core
