// Vectors and ranks over HTTP: /v1/embeddings of OpenAI, /api/embed and /api/embeddings of Ollama,
// /embedding and /rerank of llama.cpp, the latter in the form of Jina and Cohere. Any model gives
// vectors; one with a head of one label ranks. A request is computed by the thread that reads it,
// so that one follows the other.
#include <chrono>
#include <cstring>

#include "base/text.hpp"
#include "io/base64.hpp"
#include "serve/dialects.hpp"
#include "serve/text_fields.hpp"

namespace loom::core {
namespace {

constexpr size_t kMostTexts = 2048;  // of a request, as OpenAI has it

struct VectorRequest {
  const JsonValue* input = nullptr;
  EmbedOptions options;
  std::string format = "float";
  int64_t length = 2;  // embd_normalize of llama.cpp
};
using VectorField = BodyField<VectorRequest>;

VectorField input_field(std::string_view name) {
  return kept_field(name, &VectorRequest::input);
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

Status read_input(const Service& service, const JsonValue& one, Inputs& to) {
  if (one.is_string()) {
    to.texts.push_back(one.text());
  } else if (one.is_array()) {
    LOOM_ASSIGN(std::vector<TokenId> ids, read_ids(service, one, "input"));
    to.ids.push_back(std::move(ids));
  } else {
    return invalid(cat("input may hold texts or lists of tokens; got ", one.describe()));
  }
  if (to.texts.empty() || to.ids.empty()) return {};
  return invalid("input holds texts and tokens; send either");
}

Result<Inputs> read_inputs(const Service& service, const JsonValue* value) {
  if (value == nullptr) return invalid("input is missing: a text, tokens, or a list of them");
  Inputs inputs;
  const std::vector<JsonValue>& parts = value->elements();
  if (value->is_string() || (!parts.empty() && parts.front().is_number())) {
    LOOM_TRY(read_input(service, *value, inputs));
    return inputs;
  }
  if (parts.empty() || parts.size() > kMostTexts) {
    return invalid(cat("input must be a text, a list of tokens, or a list of 1 to ", kMostTexts,
                       " of them; got ", value->describe()));
  }
  for (const JsonValue& one : parts) LOOM_TRY(read_input(service, one, inputs));
  return inputs;
}

Result<std::vector<TextEmbedding>> vectors(const Service& service, VectorRequest& request,
                                           const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(const Inputs inputs, read_inputs(service, request.input));
  request.options.progress = [&](int64_t, int64_t) {
    return !reply->gone() && !service.stopping();
  };
  const Model& model = service.model();
  return inputs.texts.empty() ? model.embed_tokens(inputs.ids, request.options)
                              : model.embed(inputs.texts, request.options);
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

Status openai_embeddings(Service& service, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply) {
  static const std::vector<VectorField> fields = {
      input_field("input"),
      string_field("encoding_format", &VectorRequest::format),
      kDimensions,
      option_text("prompt_name", &EmbedOptions::prompt_name),
      ignored_field<VectorRequest>("model"),
      ignored_field<VectorRequest>("user")};
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, fields, service.strict(), request));
  if (request.format != "float" && request.format != "base64")
    return invalid(cat("encoding_format must be \"float\" or \"base64\"; got \"",
                       printable(request.format), "\""));
  LOOM_ASSIGN(const std::vector<TextEmbedding> found, vectors(service, request, reply));
  JsonValue data = JsonValue::array();
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<float>& values = found[i].values;
    data.push(object(
        "object", "embedding", "index", i, "embedding",
        request.format == "float" ? numbers(values) : JsonValue::string(packed_vector(values))));
  }
  send_json(*reply, 200,
            object("object", "list", "data", std::move(data), "model",
                   std::string_view(service.name()), "usage", usage_of(tokens_of(found))));
  return {};
}

// Times in nanoseconds, as Ollama tells them.
Status ollama_embed(Service& service, const JsonValue& body,
                    const std::shared_ptr<HttpReply>& reply) {
  static const std::vector<VectorField> fields = {input_field("input"),
                                                  kTruncate,
                                                  kDimensions,
                                                  ignored_field<VectorRequest>("model"),
                                                  ignored_field<VectorRequest>("keep_alive"),
                                                  ignored_field<VectorRequest>("options")};
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, fields, service.strict(), request));
  const auto begin = std::chrono::steady_clock::now();
  LOOM_ASSIGN(const std::vector<TextEmbedding> found, vectors(service, request, reply));
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - begin);
  JsonValue rows = JsonValue::array();
  for (const TextEmbedding& one : found) rows.push(numbers(one.values));
  send_json(*reply, 200,
            object("model", std::string_view(service.name()), "embeddings", std::move(rows),
                   "total_duration", static_cast<int64_t>(took.count()), "load_duration", 0,
                   "prompt_eval_count", tokens_of(found)));
  return {};
}

Status ollama_embeddings(Service& service, const JsonValue& body,
                         const std::shared_ptr<HttpReply>& reply) {
  static const std::vector<VectorField> fields = {
      input_field("prompt"), ignored_field<VectorRequest>("model"),
      ignored_field<VectorRequest>("keep_alive"), ignored_field<VectorRequest>("options")};
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, fields, service.strict(), request));
  if (request.input != nullptr && !request.input->is_string())
    return invalid(cat("prompt must be a text; got ", request.input->describe()));
  LOOM_ASSIGN(const std::vector<TextEmbedding> found, vectors(service, request, reply));
  send_json(*reply, 200, object("embedding", numbers(found.front().values)));
  return {};
}

// llama.cpp gives a list of vectors for each text: one, or one per token.
Status native_embedding(Service& service, const JsonValue& body,
                        const std::shared_ptr<HttpReply>& reply) {
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
  VectorRequest request;
  LOOM_TRY(take_fields<VectorRequest>(body, fields, service.strict(), request));
  LOOM_ASSIGN(const std::vector<TextEmbedding> found, vectors(service, request, reply));
  JsonValue out = JsonValue::array();
  for (size_t i = 0; i < found.size(); ++i)
    out.push(object("index", i, "embedding", list(numbers(found[i].values))));
  send_json(*reply, 200, out);
  return {};
}

struct RankRequest {
  std::string query;
  const JsonValue* documents = nullptr;
  int64_t top = 0;
  bool with_documents = false;
};

// A document is a text, or an object with one.
Result<std::vector<std::string>> read_documents(const JsonValue* value) {
  if (value == nullptr || value->elements().empty() || value->elements().size() > kMostTexts)
    return invalid(cat("documents must be a list of 1 to ", kMostTexts, " texts"));
  std::vector<std::string> out;
  for (const JsonValue& one : value->elements()) {
    const JsonValue* text = one.is_object() ? one.find("text") : &one;
    if (text == nullptr || !text->is_string())
      return invalid(cat("documents may hold texts; got ", one.describe()));
    out.push_back(text->text());
  }
  return out;
}

Status rank(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  static const std::vector<BodyField<RankRequest>> fields = {
      string_field("query", &RankRequest::query),
      kept_field("documents", &RankRequest::documents),
      {"top_n", [](const JsonValue& v, std::string_view name,
                   RankRequest& r) { return take_int(v, name, 1, 1 << 24, r.top); }},
      bool_field("return_documents", &RankRequest::with_documents),
      ignored_field<RankRequest>("model")};
  RankRequest request;
  LOOM_TRY(take_fields<RankRequest>(body, fields, service.strict(), request));
  if (request.query.empty()) return invalid("query is missing: a text");
  LOOM_ASSIGN(const std::vector<std::string> documents, read_documents(request.documents));
  RerankOptions options;
  options.progress = [&](int64_t, int64_t) { return !reply->gone() && !service.stopping(); };
  LOOM_ASSIGN(const std::vector<Ranked> ranked,
              service.model().rerank(request.query, documents, options));
  JsonValue results = JsonValue::array();
  int64_t tokens = 0;
  for (const Ranked& one : ranked) {
    tokens += one.tokens;
    if (request.top > 0 && static_cast<int64_t>(results.elements().size()) >= request.top) continue;
    JsonValue row = object("index", one.index, "relevance_score", static_cast<double>(one.score));
    if (request.with_documents) {
      const std::string& text = documents[static_cast<size_t>(one.index)];
      row.add("document", object("text", std::string_view(text)));
    }
    results.push(std::move(row));
  }
  send_json(*reply, 200,
            object("model", std::string_view(service.name()), "object", "list", "usage",
                   usage_of(tokens), "results", std::move(results)));
  return {};
}

}  // namespace

void add_embeddings(std::vector<Route>& routes) {
  static const ErrorsOnly ollama([](int, std::string_view, const Error& error) {
    return object("error", std::string_view(message_of(error)));
  });
  routes.push_back(text_route("/v1/embeddings", openai_embeddings, openai_errors()));
  routes.push_back(text_route("/api/embed", ollama_embed, ollama));
  routes.push_back(text_route("/api/embeddings", ollama_embeddings, ollama));
  for (const char* path : {"/embedding", "/embeddings"})
    routes.push_back(text_route(path, native_embedding, openai_errors()));
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"})
    routes.push_back(text_route(path, rank, openai_errors()));
}

}  // namespace loom::core
