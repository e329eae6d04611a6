// Ollama's generate and chat, streamed as lines of JSON, and its requests about models.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

#include "base/text.hpp"
#include "chat/tool_format.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  std::string prompt, system;
  const JsonValue* messages = nullptr;
  ToolFields tools;
  JsonValue variables;
  std::optional<int64_t> keep_alive;  // seconds; -1 means forever
  bool raw = false;
};
using RequestField = BodyField<Request>;

const std::vector<RequestField>& option_fields() {
  static const std::vector<RequestField> table = {
      {"num_predict",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         LOOM_TRY(take_int(v, name, -2, INT32_MAX, r.text.max_tokens));
         r.text.max_tokens = std::max<int64_t>(r.text.max_tokens, -1);  // -2 fills the context
         return {};
       }},
      text_field<Request>("seed", take_seed),
      sampler_field<Request>("temperature", "temperature"),
      sampler_field<Request>("min_p", "min_p"),
      sampler_field<Request>("repeat_penalty", "repetition_penalty"),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("top_k", take_top_k),
      text_field<Request>("repeat_last_n", take_window),
      text_field<Request>("stop", take_stop),
      sampler_field<Request>("presence_penalty", "presence_penalty"),
      sampler_field<Request>("frequency_penalty", "frequency_penalty"),
      text_field<Request>("typical_p", take_typical),
      sampler_field<Request>("mirostat", "mirostat"),
      sampler_field<Request>("mirostat_tau", "mirostat_tau"),
      sampler_field<Request>("mirostat_eta", "mirostat_eta"),
  };
  return table;
}

const std::vector<RequestField>& fields() {
  static const std::vector<RequestField> table = {
      ignored_field<Request>("model"),
      {"keep_alive",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         LOOM_ASSIGN(r.keep_alive, read_keep_alive(v, name));
         return {};
       }},
      string_field("prompt", &Request::prompt),
      string_field("system", &Request::system),
      json_field("messages", &Request::messages),
      bool_field("raw", &Request::raw),
      text_field<Request>("stream", take_stream),
      text_field<Request>("cache_salt", take_cache_salt),
      {"options", [](const JsonValue& v, std::string_view,
                     Request& r) { return take_fields<Request>(v, option_fields(), false, r); }},
      {"format",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         if (!v.is_string()) return take_schema(v, name, r.text);
         if (v.text().empty()) return {};
         if (v.text() != "json") return invalid(cat(name, " must be \"json\" or a JSON schema"));
         r.text.options.json_schema = R"({"type":"object"})";
         return {};
       }},
      off_field<Request>("template"),
      off_field<Request>("suffix"),
      off_field<Request>("images"),
      {"tools",
       [](const JsonValue& v, std::string_view, Request& r) {
         r.tools.tools = &v;
         return Status();
       }},
      off_field<Request>("context"),
      {"think",
       [](const JsonValue& v, std::string_view name, Request& r) -> Status {
         if (v.is_string()) return take_effort(v, name, r.tools.effort);
         bool think = true;
         LOOM_TRY(take_bool(v, name, think));
         r.variables = object("enable_thinking", think);
         return {};
       }},
      off_field<Request>("logprobs"),
      off_field<Request>("top_logprobs"),
  };
  return table;
}

std::string time_text(std::time_t when) {
  std::tm utc{};
  gmtime_r(&when, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text, length};
}
std::string time_now() {
  return time_text(std::time(nullptr));
}

int64_t nanoseconds(double seconds) {
  return static_cast<int64_t>(seconds * 1e9);
}

class Lines final : public Dialect {
 public:
  // `replies`: one, or none if the reply is text only.
  Lines(const Service& service, bool chat, std::vector<ChatReply> replies)
      : service_(service), chat_(chat), replies_(std::move(replies)) {}

  std::string_view stream_type() const override { return "application/x-ndjson"; }
  std::string piece(size_t, std::string_view text, const Token*) override {
    if (!replies_.empty()) return pieces(replies_[0].feed(text));
    return dump_json(line(text, false)) + "\n";
  }
  std::string last(size_t, const TextEnd& end) override {
    std::string out;
    if (!replies_.empty()) out = pieces(replies_[0].finish());
    JsonValue ended = line("", true);
    if (!replies_.empty()) {
      const ParsedReply reply =
          replies_[0].reply();  // calls are sent when their arguments are complete
      if (!reply.calls.empty())
        out += dump_json(message_line(ParsedReply{"", "", reply.calls}, false)) + "\n";
    }
    add_end(ended, end);
    return out + dump_json(ended) + "\n";
  }
  std::string on_error(const Error& error) override {
    return dump_json(object("error", std::string_view(message_of(error)))) + "\n";
  }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    const TextEnd& end = texts.front();
    JsonValue out;
    if (replies_.empty()) {
      out = line(end.text.text, true);
    } else {
      replies_[0].feed(end.text.text);
      replies_[0].finish();
      out = message_line(replies_[0].reply(), true);
    }
    add_end(out, end);
    return out;
  }
  JsonValue error(int, std::string_view, const Error& error) const override {
    return object("error", std::string_view(message_of(error)));
  }

 private:
  JsonValue line(std::string_view text, bool done) const {
    JsonValue out = object("model", std::string_view(service_.name()), "created_at",
                           std::string_view(time_now()));
    if (chat_) {
      out.add("message", object("role", "assistant", "content", text));
    } else {
      out.add("response", json(text));
    }
    out.add("done", json(done));
    return out;
  }
  // A message with the contents of a reply; arguments are objects if they are valid JSON.
  JsonValue message_line(const ParsedReply& reply, bool done) const {
    JsonValue out = object("model", std::string_view(service_.name()), "created_at",
                           std::string_view(time_now()));
    JsonValue message = object("role", "assistant", "content", std::string_view(reply.text));
    if (!reply.reasoning.empty()) message.add("thinking", json(reply.reasoning));
    JsonValue calls = JsonValue::array();
    for (const ToolCall& call : reply.calls) {
      Result<JsonValue> arguments = parse_json(call.arguments, "arguments");
      calls.push(object("function",
                        object("name", std::string_view(call.name), "arguments",
                               arguments.ok() ? std::move(*arguments) : json(call.arguments))));
    }
    if (!reply.calls.empty()) message.add("tool_calls", std::move(calls));
    out.add("message", std::move(message));
    out.add("done", json(done));
    return out;
  }
  std::string pieces(const std::vector<ReplyPiece>& all) const {
    std::string out;
    for (const ReplyPiece& piece : all) {
      ParsedReply part;
      if (piece.kind == ReplyPiece::Kind::text) part.text = piece.text;
      if (piece.kind == ReplyPiece::Kind::reasoning) part.reasoning = piece.text;
      if (piece.call < 0) out += dump_json(message_line(part, false)) + "\n";
    }
    return out;
  }
  void add_end(JsonValue& out, const TextEnd& end) const {
    const Generation& g = end.text;
    const bool cut = g.stop == StopReason::length || g.stop == StopReason::context;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
    add_members(out, "done_reason", cut ? "length" : "stop", "total_duration",
                nanoseconds(took.count()), "load_duration", 0, "prompt_eval_count",
                end.cached + g.prompt_tokens, "prompt_eval_duration",
                nanoseconds(g.prefill_seconds), "eval_count", g.token_ids.size(), "eval_duration",
                nanoseconds(g.decode_seconds));
  }

  const Service& service_;
  const bool chat_;
  std::vector<ChatReply> replies_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

Result<Request> read(Service& service, const JsonValue& body) {
  Request request;
  request.text.stream = true;
  SamplerOptions& s = request.text.options.sampler;
  s.temperature = 0.8f;
  s.top_k = 40;
  s.top_p = 0.9f;
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (!request.text.has_seed) s.seed = new_seed();
  if (request.keep_alive) service.keep_alive(*request.keep_alive);
  return request;
}

// Without a prompt a model is loaded, or with keep_alive 0 unloaded.
Status only_load(const Service& service, const Request& request, bool chat, HttpReply& reply) {
  const bool unloads = request.keep_alive.value_or(-1) == 0;
  JsonValue out =
      object("model", std::string_view(service.name()), "created_at", std::string_view(time_now()));
  if (chat) {
    out.add("message", object("role", "assistant", "content", ""));
  } else {
    out.add("response", json(""));
  }
  add_members(out, "done", true, "done_reason", unloads ? "unload" : "load");
  send_json(reply, 200, std::move(out));
  return {};
}

Status write(Service& service, Request request, std::vector<TokenId> prompt,
             std::shared_ptr<Lines> lines, const std::shared_ptr<HttpReply>& reply) {
  request.text.prompts.push_back(std::move(prompt));
  return service.write(std::move(request.text), std::move(lines), reply);
}

// A prompt is a chat question if the model has a template, else a text to continue.
Status generate(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(Request request, read(service, body));
  const Model& model = service.model();
  if (request.prompt.empty()) return only_load(service, request, false, *reply);
  if (request.raw || !model.info().has_chat_template) {
    LOOM_ASSIGN(std::vector<TokenId> ids, service.tokenize(request.prompt, *reply));
    auto lines = std::make_shared<Lines>(service, false, std::vector<ChatReply>());
    return write(service, std::move(request), std::move(ids), std::move(lines), reply);
  }
  std::vector<ChatTurn> turns;
  if (!request.system.empty()) turns.push_back({"system", request.system});
  turns.push_back({"user", request.prompt});
  LOOM_TRY(service.check_text(request.prompt));
  LOOM_ASSIGN(const std::string text, model.render_chat(service.with_own_turns(turns)));
  LOOM_ASSIGN(std::vector<TokenId> ids, service.tokenize(text, *reply, false));
  auto lines = std::make_shared<Lines>(service, false, std::vector<ChatReply>());
  return write(service, std::move(request), std::move(ids), std::move(lines), reply);
}

Status chat(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(Request request, read(service, body));
  if (request.messages == nullptr) return invalid("messages is missing: a list of messages");
  if (request.messages->is_array() && request.messages->elements().empty())
    return only_load(service, request, true, *reply);
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, service.turns(*request.messages));
  if (!request.variables.is_null()) request.tools.variables = &request.variables;
  request.tools.schema = request.text.options.json_schema;
  LOOM_ASSIGN(ChatPrompt prompt, chat_prompt(service, turns, request.tools, *reply));
  LOOM_ASSIGN(std::vector<ChatReply> replies, ChatReply::make(service, prompt, 1, "call_"));
  LOOM_TRY(prompt.apply(request.text.options));
  auto lines = std::make_shared<Lines>(service, true, std::move(replies));
  request.tools = {};
  return write(service, std::move(request), std::move(prompt.ids), std::move(lines), reply);
}

JsonValue details(const Service& service) {
  const ModelInfo& info = service.model().info();
  return object("parent_model", "", "format", "loom", "family", std::string_view(info.architecture),
                "families", list(std::string_view(info.architecture)), "parameter_size",
                std::string_view(cat(info.parameters / 100000 / 10.0, "M")), "quantization_level",
                loom::dtype_name(info.dtype));
}

// For a model that is not loaded, only the size of its file is known.
JsonValue row_json(const Models& models, const Models::Row& row) {
  const std::string_view name = row.name;
  JsonValue out = object("name", name, "model", name, "modified_at",
                         std::string_view(time_text(models.started())), "size", row.bytes);
  if (row.service != nullptr) {
    add_members(out, "digest", std::string_view(row.service->fingerprint()), "details",
                details(*row.service));
  } else {
    add_members(out, "digest", "", "details",
                object("parent_model", "", "format", "loom", "family", "", "families",
                       JsonValue::array(), "parameter_size", "", "quantization_level", ""));
  }
  return out;
}

void tags(const Call& call) {
  JsonValue rows = JsonValue::array();
  for (const Models::Row& row : call.models.list()) rows.push(row_json(call.models, row));
  send_json(*call.reply, 200, object("models", std::move(rows)));
}

void running(const Call& call) {
  JsonValue rows = JsonValue::array();
  for (const Models::Row& row : call.models.list()) {
    if (row.service == nullptr) continue;
    JsonValue one = row_json(call.models, row);
    const std::string expires = row.expires < 0 ? "9999-12-31T23:59:59Z" : time_text(row.expires);
    add_members(one, "expires_at", std::string_view(expires), "size_vram",
                row.service->on_gpu() ? row.bytes : 0, "context_length",
                row.service->scheduler().context());
    rows.push(std::move(one));
  }
  send_json(*call.reply, 200, object("models", std::move(rows)));
}

// Clients compare it with the Ollama version that has the features they use. So it names the
// interface version that this file follows.
constexpr std::string_view kInterface = "0.12.6";

void version(const Call& call) {
  send_json(*call.reply, 200,
            object("version", kInterface, "loom",
                   std::string_view(call.models.options().service.version)));
}

// Clients offer tools and thinking for models that have them in this list.
JsonValue capabilities(const Service& service) {
  const Model& model = service.model();
  if (model.info().encoder) return list("embedding");
  JsonValue out = list("completion");
  if (!model.info().has_chat_template) return out;
  out.push(json("tools"));
  const std::string_view source = model.chat_template();
  if (source.find(tool_format(source).think_open) != std::string::npos) out.push(json("thinking"));
  return out;
}

Status show(Service& service, const JsonValue&, const std::shared_ptr<HttpReply>& reply) {
  const ModelInfo& info = service.model().info();
  const std::string& kind = info.architecture;
  JsonValue about =
      object("general.architecture", std::string_view(kind), "general.basename",
             std::string_view(service.name()), "general.parameter_count", info.parameters);
  // Under the name of the architecture, as in Ollama, and under a constant one.
  for (const std::string& prefix : {kind, std::string("llm")}) {
    about.add(prefix + ".context_length", json(info.context));
    about.add(prefix + ".embedding_length", json(info.width));
    about.add(prefix + ".block_count", json(info.layers));
    about.add(prefix + ".attention.head_count", json(info.heads));
    about.add(prefix + ".attention.head_count_kv", json(info.kv_heads));
    about.add(prefix + ".vocab_size", json(info.vocab));
  }
  const ModelSettings& own = service.settings();
  JsonValue out = object(
      "license", std::string_view(own.license), "modelfile", std::string_view(own.modelfile),
      "parameters", std::string_view(own.parameters), "template", service.model().chat_template(),
      "details", details(service), "model_info", std::move(about), "capabilities",
      capabilities(service), "modified_at", std::string_view(time_text(service.started())));
  if (!own.system.empty()) out.add("system", json(own.system));
  JsonValue messages = JsonValue::array();
  for (const ChatTurn& turn : own.messages)
    messages.push(
        object("role", std::string_view(turn.role), "content", std::string_view(turn.content)));
  if (!own.messages.empty()) out.add("messages", std::move(messages));
  send_json(*reply, 200, std::move(out));
  return {};
}

}  // namespace

const Dialect& ollama_errors() {
  static const ErrorsOnly dialect([](int, std::string_view, const Error& error) {
    return object("error", std::string_view(message_of(error)));
  });
  return dialect;
}

void add_ollama(std::vector<Route>& routes) {
  const Dialect& errors = ollama_errors();
  const auto schema = [] { return schema_of<Request>(fields()); };
  routes.push_back(text_route("/api/generate", generate, errors, schema));
  routes.push_back(text_route("/api/chat", chat, errors, schema));
  routes.push_back(text_route("/api/show", show, errors));
  routes.push_back({"GET", "/api/tags", true, tags});
  routes.push_back({"GET", "/api/ps", true, running});
  routes.push_back({"GET", "/api/version", true, version});
}

}  // namespace loom::core
