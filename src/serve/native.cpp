// llama.cpp's own routes that its clients use, health, and figures for Prometheus.
#include "base/text.hpp"
#include "serve/dialects.hpp"
#include "serve/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* prompt = nullptr;
  bool return_tokens = false;
};
using RequestField = BodyField<Request>;

std::vector<RequestField> with_samplers(std::vector<RequestField> own) {
  for (const NamedField& f : kLlamaFields) own.push_back(text_field<Request>(f.name, f.take));
  return own;
}

const std::vector<RequestField>& fields() {
  static const std::vector<RequestField> table = with_samplers({
      kept_field("prompt", &Request::prompt),
      bool_field("return_tokens", &Request::return_tokens),
      text_field<Request>("n_predict", take_max_tokens),
      text_field<Request>("max_tokens", take_max_tokens),
      text_field<Request>("temperature", take_temperature),
      text_field<Request>("min_p", take_min_p),
      text_field<Request>("repeat_penalty", take_repetition),
      text_field<Request>("repeat_last_n", take_window),
      text_field<Request>("top_k", take_top_k),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stop", take_stop),
      text_field<Request>("stream", take_stream),
      text_field<Request>("ignore_eos", take_ignore_eos),
      {"n_probs",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         int64_t& most = r.text.options.top_logprobs;
         LOOM_TRY(take_int(v, name, 0, 100, most));
         r.text.options.logprobs = most > 0;
         return {};
       }},
      text_field<Request>("grammar", take_grammar),
      text_field<Request>("json_schema", take_schema),
      // Whatever is said of them, the same request gets the same text.
      ignored_field<Request>("cache_prompt"),
      ignored_field<Request>("id_slot"),
      ignored_field<Request>("n_keep"),
  });
  return table;
}

class Native final : public Dialect {
 public:
  Native(const Service& service, const Request& request)
      : service_(service),
        options_(request.text.options),
        return_tokens_(request.return_tokens || request.text.stream),
        many_(request.text.prompts.size() > 1),
        chances_(request.text.prompts.size(), JsonValue::array()) {}

  std::string piece(size_t i, std::string_view text, const Token* token) override {
    JsonValue out = object("index", i, "content", text, "tokens", JsonValue::array(), "stop", false,
                           "id_slot", 0);
    if (token != nullptr) out.add("completion_probabilities", list(chance(*token)));
    return sse(out);
  }
  std::string last(size_t i, const TextEnd& end) override { return sse(whole_of(i, "", end)); }
  std::string broken(const Error& error) override {
    const ErrorKind kind = kind_of(error);
    return sse(openai_error(kind.status, kind.type, error));
  }
  void note(size_t i, const Token& token) override { chances_[i].push(chance(token)); }
  JsonValue whole(const std::vector<TextEnd>& texts) override {
    if (!many_) return whole_of(0, texts.front().text.text, texts.front());
    JsonValue out = JsonValue::array();
    for (size_t i = 0; i < texts.size(); ++i) out.push(whole_of(i, texts[i].text.text, texts[i]));
    return out;
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return openai_error(status, type, error);
  }
  bool tells_tokens() const override { return options_.logprobs; }

 private:
  JsonValue one(TokenId id, float logprob) const {
    const TokenId ids[] = {id};
    const Result<std::string> text = service_.model().detokenize(ids, false);
    const std::string shown = text.ok() ? *text : std::string();
    JsonValue bytes = JsonValue::array();
    for (const char c : shown) bytes.push(JsonValue::integer(static_cast<unsigned char>(c)));
    return object("id", id, "token", std::string_view(shown), "bytes", std::move(bytes), "logprob",
                  static_cast<double>(logprob));
  }
  JsonValue chance(const Token& token) const {
    JsonValue out = one(token.id, token.logprob);
    JsonValue top = JsonValue::array();
    for (const TokenChoice& choice : token.top) top.push(one(choice.id, choice.logprob));
    out.add("top_logprobs", std::move(top));
    return out;
  }
  JsonValue whole_of(size_t i, std::string_view text, const TextEnd& end) {
    const Generation& g = end.text;
    const SamplerOptions& s = options_.sampler;
    const auto written = static_cast<int64_t>(g.token_ids.size());
    const int64_t prompt = end.cached + g.prompt_tokens;
    const bool word = g.stop == StopReason::stop_string;
    JsonValue out = object(
        "index", i, "content", text, "tokens",
        return_tokens_ ? json_ids(g.token_ids) : JsonValue::array(), "id_slot", 0, "stop", true,
        "model", std::string_view(service_.name()), "tokens_predicted", written, "tokens_evaluated",
        prompt, "tokens_cached", prompt + g.decode_steps, "has_new_line",
        g.text.find('\n') != std::string::npos, "truncated", false, "stop_type",
        g.stop == StopReason::eos ? "eos"
        : word                    ? "word"
                                  : "limit",
        "stopping_word",
        std::string_view(word ? stop_of(service_.model(), g, options_.stop) : std::string()));
    add_members(
        out, "generation_settings",
        object("seed", static_cast<int64_t>(s.seed), "temperature",
               static_cast<double>(s.temperature), "top_k", s.top_k, "top_p",
               static_cast<double>(s.top_p), "min_p", static_cast<double>(s.min_p),
               "repeat_penalty", static_cast<double>(s.repetition_penalty)),
        "timings",
        object("cache_n", end.cached, "prompt_n", g.prompt_tokens, "prompt_ms",
               g.prefill_seconds * 1e3, "prompt_per_second",
               rate(g.prompt_tokens, g.prefill_seconds), "predicted_n", written, "predicted_ms",
               g.decode_seconds * 1e3, "predicted_per_second", rate(written, g.decode_seconds)));
    if (tells_tokens()) out.add("completion_probabilities", std::move(chances_[i]));
    return out;
  }
  static double rate(int64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  }

  const Service& service_;
  const GenerateOptions options_;
  const bool return_tokens_, many_;
  std::vector<JsonValue> chances_;
};

Status completion(Service& service, const JsonValue& body,
                  const std::shared_ptr<HttpReply>& reply) {
  Request request;
  SamplerOptions& s = request.text.options.sampler;
  s.temperature = 0.8f;
  s.top_k = 40;
  s.top_p = 0.95f;
  s.min_p = 0.05f;
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (!request.text.has_seed) s.seed = new_seed();
  if (request.prompt == nullptr)
    return invalid("prompt is missing: a text, tokens, or a list of them");
  LOOM_ASSIGN(request.text.prompts, read_prompts(service, *request.prompt));
  auto dialect = std::make_shared<Native>(service, request);
  return service.write(std::move(request.text), std::move(dialect), reply);
}

Status tokenize(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  std::string content;
  bool special = false, pieces = false;
  const JsonValue* text = body.find("content");
  if (text == nullptr) return invalid("content is missing: the text");
  LOOM_TRY(take_text(*text, "content", content));
  if (const JsonValue* v = body.find("add_special"))
    LOOM_TRY(take_bool(*v, "add_special", special));
  if (const JsonValue* v = body.find("with_pieces")) LOOM_TRY(take_bool(*v, "with_pieces", pieces));
  LOOM_ASSIGN(const std::vector<TokenId> ids, service.model().tokenize(content, special));
  JsonValue tokens = JsonValue::array();
  for (const TokenId id : ids) {
    const TokenId one[] = {id};
    const Result<std::string> piece = service.model().detokenize(one, false);
    tokens.push(pieces ? object("id", id, "piece", std::string_view(piece.ok() ? *piece : ""))
                       : JsonValue::integer(id));
  }
  send_json(*reply, 200, object("tokens", std::move(tokens)));
  return {};
}

Status detokenize(Service& service, const JsonValue& body,
                  const std::shared_ptr<HttpReply>& reply) {
  const JsonValue* tokens = body.find("tokens");
  if (tokens == nullptr || !tokens->is_array()) return invalid("tokens must be a list of tokens");
  LOOM_ASSIGN(const std::vector<TokenId> ids, read_ids(service, *tokens, "tokens"));
  LOOM_ASSIGN(const std::string text, service.model().detokenize(ids, false));
  send_json(*reply, 200, object("content", std::string_view(text)));
  return {};
}

Status apply_template(Service& service, const JsonValue& body,
                      const std::shared_ptr<HttpReply>& reply) {
  const JsonValue* messages = body.find("messages");
  if (messages == nullptr) return invalid("messages is missing: a list of messages");
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, service.turns(*messages));
  LOOM_ASSIGN(const std::string text, service.model().render_chat(turns));
  send_json(*reply, 200, object("prompt", std::string_view(text)));
  return {};
}

void health(const Call& call) {
  send_json(*call.reply, 200, object("status", "ok"));
}

void props(const Call& call) {
  const ModelInfo& info = call.service.model().info();
  send_json(
      *call.reply, 200,
      object("total_slots", call.service.sessions(), "model_path", std::string_view(info.source),
             "model_alias", std::string_view(call.service.name()), "n_ctx",
             call.service.scheduler().context(), "build_info",
             std::string_view("loom " + call.service.version()), "system_fingerprint",
             std::string_view(call.service.fingerprint())));
}

// https://prometheus.io/docs/instrumenting/exposition_formats/
void metrics(const Call& call) {
  const SchedulerCounts c = call.service.scheduler().counts();
  std::string out;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       auto value) {
    out += cat("# HELP loom_", name, " ", help, "\n# TYPE loom_", name, " ", type, "\nloom_", name,
               " ", value, "\n");
  };
  add("texts_total", "counter", "Texts that have ended.", c.texts);
  add("texts_cancelled_total", "counter", "Texts whose client went away.", c.cancelled);
  add("texts_failed_total", "counter", "Texts that ended with an error.", c.failed);
  add("texts_running", "gauge", "Texts that are written now.", c.running);
  add("texts_waiting", "gauge", "Texts that wait for a session.", c.waiting);
  add("prompt_tokens_total", "counter", "Tokens of prompts.", c.prompt_tokens);
  add("prompt_tokens_cached_total", "counter", "Of those, read before by a session.",
      c.cached_tokens);
  add("written_tokens_total", "counter", "Tokens written.", c.written_tokens);
  add("prompt_seconds_total", "counter", "Time spent reading prompts.", c.prompt_seconds);
  add("written_seconds_total", "counter", "Time spent writing.", c.written_seconds);
  call.reply->send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                   std::move(out));
}

}  // namespace

void add_native(std::vector<Route>& routes) {
  for (const char* path : {"/completion", "/completions"})
    routes.push_back(text_route(path, completion, openai_errors()));
  routes.push_back(text_route("/tokenize", tokenize, openai_errors()));
  routes.push_back(text_route("/detokenize", detokenize, openai_errors()));
  routes.push_back(text_route("/apply-template", apply_template, openai_errors()));
  for (const char* path : {"/health", "/v1/health"})
    routes.push_back({"GET", path, true, health, true});
  routes.push_back({"GET", "/props", true, props});
  routes.push_back({"GET", "/metrics", true, metrics});
}

}  // namespace loom::core
