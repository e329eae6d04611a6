// llama.cpp's own routes that its clients use, health, and metrics for Prometheus.
#include <cmath>

#include "base/text.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/infill.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* prompt = nullptr;
  bool return_tokens = false;
  std::vector<std::string> response_fields;  // "a/b" is the member b of the object a
  InfillParts infill;                        // of /infill
};
using RequestField = BodyField<Request>;

std::vector<RequestField> with_samplers(std::vector<RequestField> own) {
  add_llama_fields<Request>(own);
  return own;
}

const std::vector<RequestField>& fields() {
  static const std::vector<RequestField> table = with_samplers({
      json_field("prompt", &Request::prompt),
      bool_field("return_tokens", &Request::return_tokens),
      {"response_fields", [](const JsonValue& v, std::string_view name,
                             Request& r) { return take_texts(v, name, 256, r.response_fields); }},
      text_field<Request>("n_predict", take_max_tokens),
      text_field<Request>("max_tokens", take_max_tokens),
      sampler_field<Request>("temperature", "temperature"),
      sampler_field<Request>("min_p", "min_p"),
      sampler_field<Request>("repeat_penalty", "repetition_penalty"),
      text_field<Request>("repeat_last_n", take_window),
      text_field<Request>("top_k", take_top_k),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stop", take_stop),
      text_field<Request>("stream", take_stream),
      text_field<Request>("ignore_eos", take_ignore_eos),
      text_field<Request>("return_progress", take_progress),
      text_field<Request>("timings_per_token", take_timings),
      {"n_probs",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         int64_t& most = r.text.options.top_logprobs;
         LOOM_TRY(take_int(v, name, 0, 100, most));
         r.text.options.logprobs = most > 0;
         return {};
       }},
      text_field<Request>("grammar", take_grammar),
      text_field<Request>("json_schema", take_schema),
      {"id_slot", [](const JsonValue& v, std::string_view name,
                     Request& r) { return take_int(v, name, -1, INT32_MAX, r.text.sequence); }},
      {"post_sampling_probs",
       [](const JsonValue& v, std::string_view name, Request& r) {
         return take_bool(v, name, r.text.options.logprobs_of_draw);
       }},
      // The same request gets the same text for any value.
      ignored_field<Request>("cache_prompt"),
  });
  return table;
}

// Fields of /infill: those of /completion, and the text around the hole.
const std::vector<RequestField>& infill_fields() {
  static const std::vector<RequestField> table = [] {
    std::vector<RequestField> all = fields();
    const auto text = [](std::string InfillParts::*where) {
      return [where](const JsonValue& v, std::string_view name, Request& r) {
        return take_text(v, name, r.infill.*where);
      };
    };
    all.push_back({"input_prefix", text(&InfillParts::prefix)});
    all.push_back({"input_suffix", text(&InfillParts::suffix)});
    all.push_back(
        {"input_extra", [](const JsonValue& v, std::string_view name, Request& r) -> Status {
           LOOM_ASSIGN(r.infill.files, read_infill_files(v, name));
           return {};
         }});
    std::ranges::find(all, "prompt", &RequestField::name)->take = text(&InfillParts::begin);
    return all;
  }();
  return table;
}

// A default request, with the defaults of llama.cpp.
Request request_of_nobody() {
  Request request;
  SamplerOptions& s = request.text.options.sampler;
  s.temperature = 0.8f;
  s.top_k = 40;
  s.top_p = 0.95f;
  s.min_p = 0.05f;
  return request;
}

// The bias of a banned token is null, which means minus infinity.
JsonValue biases_of(const Model& model, const GenerateOptions& options) {
  JsonValue out = JsonValue::array();
  for (const TokenBias& one : options.sampler.logit_bias)
    out.push(object("token", one.id, "bias", static_cast<double>(one.bias)));
  for (const TokenId id : options.sampler.banned_tokens)
    out.push(object("token", id, "bias", JsonValue()));
  for (const TokenId id : model.info().eos_ids) {
    if (options.ignore_eos) out.push(object("token", id, "bias", JsonValue()));
  }
  return out;
}

JsonValue settings_of(const Model& model, const GenerateOptions& options, int64_t max_tokens) {
  const SamplerOptions& s = options.sampler;
  return object("logit_bias", biases_of(model, options), "n_predict", max_tokens, "seed",
                static_cast<int64_t>(s.seed), "temperature", static_cast<double>(s.temperature),
                "top_k", s.top_k, "top_p", static_cast<double>(s.top_p), "min_p",
                static_cast<double>(s.min_p), "repeat_penalty",
                static_cast<double>(s.repetition_penalty), "repeat_last_n", s.repetition_window,
                "ignore_eos", options.ignore_eos);
}

// The members that a client requested, each under its requested path.
JsonValue selected(const JsonValue& all, const std::vector<std::string>& paths) {
  JsonValue out = JsonValue::object();
  for (const std::string& path : paths) {
    const JsonValue* at = &all;
    for (size_t begin = 0; at != nullptr && begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      at = at->find(path.substr(begin, end - begin));
      begin = end + 1;
    }
    if (at != nullptr && out.find(path) == nullptr) out.add(path, *at);
  }
  return out;
}

class Native final : public Dialect {
 public:
  Native(const Service& service, const Request& request)
      : service_(service),
        options_(request.text.options),
        max_tokens_(request.text.max_tokens),
        stream_(request.text.stream),
        return_tokens_(request.return_tokens || stream_),
        many_(request.text.prompts.size() > 1),
        prompts_(request.text.prompts),
        response_fields_(request.response_fields),
        slots_(request.text.prompts.size()),
        chances_(request.text.prompts.size(), JsonValue::array()) {}

  void on_start(size_t i, int64_t sequence) override { slots_[i] = sequence; }

  std::string piece(size_t i, std::string_view text, const Token* token) override {
    JsonValue out =
        object("index", i, "content", text, "tokens",
               token == nullptr ? JsonValue::array() : json_ids(std::span(&token->id, 1)), "stop",
               false, "id_slot", slots_[i]);
    if (options_.logprobs && token != nullptr)
      out.add("completion_probabilities", list(chance(*token)));
    add_timings(out);
    return sse(out);
  }
  std::string progress(size_t i, const JsonValue& prompt_progress) override {
    JsonValue out = object("index", i, "content", "", "tokens", JsonValue::array(), "stop", false,
                           "id_slot", slots_[i], "prompt_progress", prompt_progress);
    add_timings(out);
    return sse(out);
  }
  std::string last(size_t i, const TextEnd& end) override { return sse(whole_of(i, "", end)); }
  std::string on_error(const Error& error) override {
    const ErrorKind kind = kind_of(error);
    return sse(openai_error(kind.status, kind.type, error));
  }
  void note(size_t i, const Token& token) override {
    if (options_.logprobs) chances_[i].push(chance(token));
  }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    if (!many_) return whole_of(0, texts.front().text.text, texts.front());
    JsonValue out = JsonValue::array();
    for (size_t i = 0; i < texts.size(); ++i) out.push(whole_of(i, texts[i].text.text, texts[i]));
    return out;
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return openai_error(status, type, error);
  }
  bool tells_tokens() const override { return options_.logprobs || stream_; }

 private:
  JsonValue one(TokenId id, float logprob) const {
    const TokenId ids[] = {id};
    const Result<std::string> text = service_.model().detokenize(ids, false);
    const std::string shown = text.ok() ? *text : std::string();
    JsonValue bytes = JsonValue::array();
    for (const char c : shown) bytes.push(JsonValue::integer(static_cast<unsigned char>(c)));
    JsonValue out = object("id", id, "token", std::string_view(shown), "bytes", std::move(bytes));
    const double value = static_cast<double>(logprob);
    if (options_.logprobs_of_draw)
      out.add("prob", json(std::exp(value)));
    else
      out.add("logprob", json(value));
    return out;
  }
  JsonValue chance(const Token& token) const {
    JsonValue out = one(token.id, token.logprob);
    JsonValue top = JsonValue::array();
    for (const TokenChoice& choice : token.top) top.push(one(choice.id, choice.logprob));
    out.add(options_.logprobs_of_draw ? "top_probs" : "top_logprobs", std::move(top));
    return out;
  }
  JsonValue whole_of(size_t i, std::string_view text, const TextEnd& end) {
    const Generation& g = end.text;
    const auto written = static_cast<int64_t>(g.token_ids.size());
    const int64_t prompt = end.cached + g.prompt_tokens;
    const bool word = g.stop == StopReason::stop_string;
    JsonValue out = object(
        "index", i, "content", text, "tokens",
        return_tokens_ ? json_ids(g.token_ids) : JsonValue::array(), "id_slot", slots_[i], "stop",
        true, "model", std::string_view(service_.name()), "tokens_predicted", written,
        "tokens_evaluated", prompt, "tokens_cached", prompt + g.decode_steps, "has_new_line",
        g.text.find('\n') != std::string::npos, "truncated",
        g.stop == StopReason::context || g.forgotten_tokens > 0, "stop_type",
        g.stop == StopReason::eos ? "eos"
        : word                    ? "word"
                                  : "limit",
        "stopping_word",
        std::string_view(word ? stop_of(service_.model(), g, options_.stop) : std::string()));
    add_members(out, "generation_settings", settings_of(service_.model(), options_, max_tokens_),
                "timings", timings_of(end));
    const Result<std::string> prompt_text = service_.model().detokenize(prompts_[i], false);
    out.add("prompt", json(std::string_view(prompt_text.ok() ? *prompt_text : "")));
    if (options_.logprobs) out.add("completion_probabilities", std::move(chances_[i]));
    return response_fields_.empty() ? out : selected(out, response_fields_);
  }

  const Service& service_;
  const GenerateOptions options_;
  const int64_t max_tokens_;
  const bool stream_, return_tokens_, many_;
  const std::vector<std::vector<TokenId>> prompts_;
  const std::vector<std::string> response_fields_;
  std::vector<int64_t> slots_;  // sequences that generate the texts
  std::vector<JsonValue> chances_;
};

Status completion(Service& service, const JsonValue& body,
                  const std::shared_ptr<HttpReply>& reply) {
  Request request = request_of_nobody();
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  if (request.prompt == nullptr)
    return invalid("prompt is missing: a text, tokens, or a list of them");
  LOOM_ASSIGN(request.text.prompts, read_prompts(service, *request.prompt, *reply));
  auto dialect = std::make_shared<Native>(service, request);
  return service.write(std::move(request.text), std::move(dialect), reply);
}

Status infill(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  Request request = request_of_nobody();
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, infill_fields(), service.strict(), request));
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  request.infill.max_tokens = request.text.max_tokens;
  LOOM_ASSIGN(InfillPrompt prompt, infill_prompt(service, request.infill, *reply));
  request.text.prompts.push_back(std::move(prompt.ids));
  request.text.options.eos_ids = std::move(prompt.ends);
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
  LOOM_TRY(service.check_text(content, kMaxDocumentBytes));
  EncodeOptions options;
  options.add_special_tokens = special;
  LOOM_ASSIGN(const std::vector<TokenId> ids, service.encode(content, *reply, std::move(options)));
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
  ToolFields fields;
  fields.tools = body.find("tools");
  fields.choice = body.find("tool_choice");
  fields.variables = body.find("chat_template_kwargs");
  if (const JsonValue* v = body.find("add_generation_prompt"))
    LOOM_TRY(take_bool(*v, "add_generation_prompt", fields.begins_reply.emplace()));
  if (const JsonValue* v = body.find("continue_final_message"))
    LOOM_TRY(take_bool(*v, "continue_final_message", fields.continues.emplace()));
  LOOM_ASSIGN(const ChatPrompt prompt, chat_prompt(service, turns, fields, *reply));
  send_json(*reply, 200, object("prompt", std::string_view(prompt.text)));
  return {};
}

void health(const Call& call) {
  send_json(*call.reply, 200, object("status", "ok"));
}

// The only model of a server has props while it sleeps too, and does not wake.
void props(const Call& call) {
  const JsonValue asleep = call.models.props_asleep();
  if (!asleep.is_null()) return send_json(*call.reply, 200, asleep);
  about_model([](Service& service, const std::shared_ptr<HttpReply>& reply) {
    send_json(*reply, 200, props_of(service, false));
  })(call);
}

void slots(Service& service, const std::shared_ptr<HttpReply>& reply) {
  const Scheduler& scheduler = service.scheduler();
  const std::vector<bool> busy = scheduler.busy_sequences();
  JsonValue out = JsonValue::array();
  for (int64_t i = 0; i < service.sessions(); ++i) {
    out.push(object("id", i, "n_ctx", scheduler.context(), "is_processing",
                    static_cast<bool>(busy[static_cast<size_t>(i)]), "speculative", false));
  }
  send_json(*reply, 200, std::move(out));
}

// llama.cpp's request to load or unload a model.
void load_model(const Call& call, const std::string& name) {
  call.models.with(
      name,
      [reply = call.reply](const Result<Models::Use>& use) {
        if (!use.ok()) return send_error(*reply, openai_errors(), use.error());
        send_json(*reply, 200, object("success", true));
      },
      [reply = call.reply] { return reply->gone(); });
}
void unload_model(const Call& call, const std::string& name) {
  const Status done = call.models.unload(name);
  if (!done.ok()) return send_error(*call.reply, openai_errors(), done.error());
  send_json(*call.reply, 200, object("success", true));
}
template <void (*Do)(const Call&, const std::string& name)>
void named_model(const Call& call) {
  const Result<JsonValue> body = parse_json(call.request.body, "the body");
  const JsonValue* name = body.ok() ? body->find("model") : nullptr;
  if (name != nullptr && name->is_string()) return Do(call, name->text());
  send_error(*call.reply, openai_errors(), invalid("model is missing: the name of a model"));
}

// Loom's own metrics, and under llama.cpp's names those that its dashboards read.
void metrics(const Call& call) {
  const SchedulerCounts c = call.models.counts();
  const auto number = [](auto value) { return static_cast<double>(value); };
  const auto rate = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0; };
  const double read = number(c.prompt_tokens - c.cached_tokens), written = number(c.written_tokens);
  struct Row {
    std::string_view name, type, help;
    double value;
  };
  const Row rows[] = {
      {"loom_texts_total", "counter", "Texts that have ended.", number(c.texts)},
      {"loom_texts_cancelled_total", "counter", "Texts whose client went away.",
       number(c.cancelled)},
      {"loom_texts_failed_total", "counter", "Texts that ended with an error.", number(c.failed)},
      {"loom_texts_running", "gauge", "Texts that are written now.", number(c.running)},
      {"loom_texts_waiting", "gauge", "Texts that wait for a session.", number(c.waiting)},
      {"loom_prompt_tokens_total", "counter", "Tokens of prompts.", number(c.prompt_tokens)},
      {"loom_prompt_tokens_cached_total", "counter", "Prompt tokens found in the KV cache.",
       number(c.cached_tokens)},
      {"loom_written_tokens_total", "counter", "Tokens written.", written},
      {"loom_prompt_seconds_total", "counter", "Time spent reading prompts.", c.prompt_seconds},
      {"loom_written_seconds_total", "counter", "Time spent writing.", c.written_seconds},
      {"llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were read.", read},
      {"llamacpp:prompt_tokens_cached_total", "counter", "Tokens of prompts read before.",
       number(c.cached_tokens)},
      {"llamacpp:prompt_seconds_total", "counter", "Time spent reading.", c.prompt_seconds},
      {"llamacpp:tokens_predicted_total", "counter", "Tokens written.", written},
      {"llamacpp:tokens_predicted_seconds_total", "counter", "Time spent writing.",
       c.written_seconds},
      {"llamacpp:prompt_tokens_seconds", "gauge", "Tokens read a second.",
       rate(read, c.prompt_seconds)},
      {"llamacpp:predicted_tokens_seconds", "gauge", "Tokens written a second.",
       rate(written, c.written_seconds)},
      {"llamacpp:requests_processing", "gauge", "Texts that are written now.", number(c.running)},
      {"llamacpp:requests_deferred", "gauge", "Texts that wait.", number(c.waiting)},
      {"llamacpp:n_decode_total", "counter", "Passes through the model.", number(c.passes)},
      {"llamacpp:n_tokens_max", "counter", "Tokens of the longest text with its prompt.",
       number(c.longest)},
      {"llamacpp:n_busy_slots_per_decode", "gauge", "Texts in a pass, on average.",
       rate(number(c.pass_texts), number(c.passes))},
      {"llamacpp:spec_decode_num_draft_tokens_total", "counter", "Tokens guessed.",
       number(c.guessed)},
      {"llamacpp:spec_decode_num_accepted_tokens_total", "counter", "Guesses that held.",
       number(c.accepted)},
      {"llamacpp:spec_decode_num_drafts_total", "counter", "Guesses made.", number(c.guesses)},
  };
  std::string out;
  for (const Row& row : rows) out += metric(row.name, row.type, row.help, row.value);
  const Metrics& request_metrics = call.models.request_metrics();
  out += request_metrics.first_token.text("loom_time_to_first_token_seconds",
                                          "From a request to its first token.");
  out += request_metrics.token.text("loom_time_between_tokens_seconds",
                                    "Between two tokens of a request.");
  out += request_metrics.request.text("loom_request_seconds",
                                      "From a request to the end of its texts.");
  call.reply->send(200,
                   {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"},
                    {"Process-Start-Time-Unix", std::to_string(call.models.started())}},
                   std::move(out));
}

}  // namespace

JsonValue props_of(const Service& service, bool asleep) {
  const ModelInfo& info = service.model().info();
  Request unsaid = request_of_nobody();
  (void)service.set_defaults(unsaid.text);  // were checked when the server began
  return object("default_generation_settings",
                object("n_ctx", service.scheduler().context(), "params",
                       settings_of(service.model(), unsaid.text.options, unsaid.text.max_tokens)),
                "total_slots", service.sessions(), "model_path", std::string_view(info.source),
                "model_alias", std::string_view(service.name()), "n_ctx",
                service.scheduler().context(), "chat_template", service.model().chat_template(),
                "build_info", std::string_view("loom " + service.version()), "has_chat_template",
                info.has_chat_template, "is_sleeping", asleep, "system_fingerprint",
                std::string_view(service.fingerprint()));
}

void add_native(std::vector<Route>& routes) {
  for (const char* path : {"/completion", "/completions"})
    routes.push_back(
        text_route(path, completion, openai_errors(), [] { return schema_of<Request>(fields()); }));
  routes.push_back(text_route("/infill", infill, openai_errors(),
                              [] { return schema_of<Request>(infill_fields()); }));
  routes.push_back(text_route("/tokenize", tokenize, openai_errors()));
  routes.push_back(text_route("/detokenize", detokenize, openai_errors()));
  routes.push_back(text_route("/apply-template", apply_template, openai_errors()));
  for (const char* path : {"/health", "/v1/health"})
    routes.push_back({"GET", path, true, health, true});
  routes.push_back({"GET", "/props", true, props});
  routes.push_back({"GET", "/slots", true, about_model(slots), false, nullptr, "slots"});
  routes.push_back({"POST", "/models/load", false, named_model<load_model>});
  routes.push_back({"POST", "/models/unload", false, named_model<unload_model>});
  routes.push_back({"GET", "/metrics", true, metrics, false, nullptr, "metrics"});
}

}  // namespace loom::core
