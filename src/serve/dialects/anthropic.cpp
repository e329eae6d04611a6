// Anthropic's messages, streamed or whole, and token counting.
#include "base/text.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* messages = nullptr;
  const JsonValue* system = nullptr;
  const JsonValue *tools = nullptr, *choice = nullptr;
  std::string effort;          // empty means unset
  std::optional<bool> thinks;  // unset means the default of the model's template
  ChatPrompt prompt;
};

Status take_system(const JsonValue& value, std::string_view /*name*/, Request& to) {
  to.system = &value;
  return {};
}

// Templates see it as the variable enable_thinking. The budget is only a hint, as for Anthropic's
// models: max_tokens limits a reply.
Status take_thinking(const JsonValue& value, std::string_view name, Request& to) {
  if (value.is_null()) return {};
  const JsonValue* type = value.find("type");
  const std::string kind = type != nullptr ? type->text() : std::string();
  if (kind != "enabled" && kind != "disabled" && kind != "adaptive") {
    return invalid(cat(name, ".type must be \"enabled\", \"disabled\" or \"adaptive\"; got ",
                       value.describe()));
  }
  if (const JsonValue* budget = value.find("budget_tokens"); budget != nullptr) {
    int64_t tokens = 0;
    LOOM_TRY(take_int(*budget, cat(name, ".budget_tokens"), 1, int64_t{1} << 31, tokens));
  }
  if (kind != "adaptive") to.thinks = kind == "enabled";
  return {};
}

// {"format": {"type": "json_schema", "schema"}, "effort"}. The effort is only a hint, like a
// budget: it is used if the template supports one.
Status take_output_config(const JsonValue& value, std::string_view name, Request& to) {
  for (const auto& [key, one] : value.members()) {
    const std::string called = cat(name, ".", key);
    if (key == "effort") {
      if (!one.is_null()) LOOM_TRY(take_effort(one, called, to.effort));
      continue;
    }
    if (key != "format") return unsupported(cat(called, " is not supported here; leave it out"));
    if (!one.is_null()) LOOM_TRY(take_format(one, called, to.text));
  }
  return {};
}

const std::vector<BodyField<Request>>& fields() {
  static const std::vector<BodyField<Request>> table = {
      json_field("messages", &Request::messages),
      {"system", take_system},
      text_field<Request>("max_tokens", take_max_tokens),
      sampler_field<Request>("temperature", "temperature"),
      text_field<Request>("top_k", take_top_k),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stop_sequences", take_stop),
      text_field<Request>("stream", take_stream),
      text_field<Request>("resumable", take_resumable),
      text_field<Request>("cache_salt", take_cache_salt),
      json_field("tools", &Request::tools),
      json_field("tool_choice", &Request::choice),
      {"thinking", take_thinking},
      ignored_field<Request>("model"),
      {"output_config", take_output_config},
      {"output_format", [](const JsonValue& v, std::string_view name,
                           Request& r) { return take_format(v, name, r.text); }},
      off_field<Request>("mcp_servers"),
      off_field<Request>("container"),
      off_field<Request>("context_management"),
      ignored_field<Request>("metadata"),
      ignored_field<Request>("service_tier"),
  };
  return table;
}

JsonValue anthropic_error(int status, std::string_view type, const Error& error) {
  const std::string_view name = status == 413                 ? "request_too_large"
                                : type == "unavailable_error" ? "overloaded_error"
                                : type == "server_error"      ? "api_error"
                                                              : type;
  return object("type", "error", "error",
                object("type", name, "message", std::string_view(message_of(error))));
}

class Messages final : public Dialect {
 public:
  // `replies`: one, or none if the reply is text only.
  Messages(const Service& service, const Request& request, std::vector<ChatReply> replies)
      : service_(service),
        stops_(request.text.options.stop),
        prompt_(static_cast<int64_t>(request.text.prompts.front().size())),
        replies_(std::move(replies)) {}

  std::string first() override {
    JsonValue message = head(JsonValue::array(), JsonValue(), JsonValue());
    message.add("usage", usage(prompt_, 0, 0));
    std::string out =
        sse(object("type", "message_start", "message", std::move(message)), "message_start");
    // A reply without calls is one block of text, open from the start.
    if (replies_.empty()) out += open(ReplyPiece{});
    return out;
  }
  std::string piece(size_t, std::string_view text, const Token*) override {
    if (replies_.empty()) return delta(object("type", "text_delta", "text", text));
    return pieces(replies_[0].feed(text));
  }
  std::string last(size_t, const TextEnd& end) override {
    std::string rest;
    if (!replies_.empty()) rest = pieces(replies_[0].finish());
    const auto [why, stop] = reason(end.text);
    const auto written = static_cast<int64_t>(end.text.token_ids.size());
    return rest + close() +
           sse(object("type", "message_delta", "delta",
                      object("stop_reason", why, "stop_sequence", stop), "usage",
                      usage(prompt_, end.cached, written)),
               "message_delta") +
           sse(object("type", "message_stop"), "message_stop");
  }
  std::string on_error(const Error& error) override {
    const ErrorKind kind = kind_of(error);
    return sse(anthropic_error(kind.status, kind.type, error), "error");
  }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    const TextEnd& end = texts.front();
    JsonValue content = JsonValue::array();
    if (replies_.empty()) {
      content.push(object("type", "text", "text", std::string_view(end.text.text)));
    } else {
      replies_[0].feed(end.text.text);
      replies_[0].finish();
      content = blocks();
    }
    const auto [why, stop] = reason(end.text);
    JsonValue out = head(std::move(content), why, stop);
    out.add("usage", usage(prompt_, end.cached, static_cast<int64_t>(end.text.token_ids.size())));
    return out;
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return anthropic_error(status, type, error);
  }
  std::string_view id() const override { return id_; }

 private:
  JsonValue blocks() {
    const ParsedReply reply = replies_[0].reply();
    JsonValue out = JsonValue::array();
    if (!reply.reasoning.empty())
      out.push(object("type", "thinking", "thinking", std::string_view(reply.reasoning),
                      "signature", ""));
    if (!reply.text.empty() || reply.calls.empty())
      out.push(object("type", "text", "text", std::string_view(reply.text)));
    for (size_t i = 0; i < reply.calls.size(); ++i) {
      Result<JsonValue> input = parse_json(reply.calls[i].arguments, "input");
      out.push(object("type", "tool_use", "id",
                      std::string_view(replies_[0].id(static_cast<int32_t>(i))), "name",
                      std::string_view(reply.calls[i].name), "input",
                      input.ok() ? std::move(*input) : JsonValue::object()));
    }
    return out;
  }
  std::string delta(JsonValue what) const {
    return sse(object("type", "content_block_delta", "index", block_, "delta", std::move(what)),
               "content_block_delta");
  }
  // Opens the block of a piece; `open_` is the open block.
  std::string open(const ReplyPiece& piece) {
    JsonValue block = object("type", "text", "text", "");
    if (piece.kind == ReplyPiece::Kind::reasoning)
      block = object("type", "thinking", "thinking", "", "signature", "");
    if (piece.kind == ReplyPiece::Kind::call) {
      block = object("type", "tool_use", "id", std::string_view(replies_[0].id(piece.call)), "name",
                     std::string_view(piece.text), "input", JsonValue::object());
    }
    open_ = piece.kind;
    ++block_;
    return sse(
        object("type", "content_block_start", "index", block_, "content_block", std::move(block)),
        "content_block_start");
  }
  std::string close() {
    if (!open_) return {};
    open_.reset();
    return sse(object("type", "content_block_stop", "index", block_), "content_block_stop");
  }
  std::string pieces(const std::vector<ReplyPiece>& all) {
    using Kind = ReplyPiece::Kind;
    std::string out;
    for (const ReplyPiece& piece : all) {
      const std::string_view text = piece.text;
      if (piece.kind == Kind::arguments) {
        out += delta(object("type", "input_json_delta", "partial_json", text));
        continue;
      }
      if (piece.kind == Kind::call || open_ != piece.kind) {
        out += close();
        out += open(piece);
      }
      if (piece.kind == Kind::text) out += delta(object("type", "text_delta", "text", text));
      if (piece.kind == Kind::reasoning)
        out += delta(object("type", "thinking_delta", "thinking", text));
    }
    return out;
  }
  JsonValue head(JsonValue content, JsonValue why, JsonValue stop) const {
    return object("id", std::string_view(id_), "type", "message", "role", "assistant", "model",
                  std::string_view(service_.name()), "content", std::move(content), "stop_reason",
                  std::move(why), "stop_sequence", std::move(stop));
  }
  // input_tokens excludes cached tokens.
  static JsonValue usage(int64_t prompt, int64_t cached, int64_t written) {
    return object("input_tokens", prompt - cached, "cache_creation_input_tokens", 0,
                  "cache_read_input_tokens", cached, "output_tokens", written);
  }
  std::pair<JsonValue, JsonValue> reason(const Generation& text) const {
    const bool calls = !replies_.empty() && !replies_[0].reply().calls.empty();
    if (text.stop == StopReason::eos) return {json(calls ? "tool_use" : "end_turn"), JsonValue()};
    if (text.stop != StopReason::stop_string) return {json("max_tokens"), JsonValue()};
    return {json("stop_sequence"), json(std::string_view(stop_of(service_.model(), text, stops_)))};
  }

  const Service& service_;
  const std::vector<std::string> stops_;
  const int64_t prompt_;
  std::vector<ChatReply> replies_;
  std::optional<ReplyPiece::Kind> open_;
  int64_t block_ = -1;
  const std::string id_ = new_id("msg_");
};

const Dialect& errors() {
  static const ErrorsOnly dialect(anthropic_error);
  return dialect;
}

// Converts {"name", "description", "input_schema"} to OpenAI's form.
Result<JsonValue> tools_of(const JsonValue& tools) {
  JsonValue out = JsonValue::array();
  for (const JsonValue& tool : tools.elements()) {
    const JsonValue* type = tool.find("type");
    if (type != nullptr && !type->is_null() && type->text() != "custom") {
      return unsupported(cat("tools[", out.elements().size(), "] is of type ", type->describe(),
                             "; no tool runs in this server, so leave it out"));
    }
    JsonValue function;
    for (const auto& [key, value] : tool.members()) {
      if (key == "input_schema") function.add("parameters", value);
      if (key == "name" || key == "description" || key == "strict") function.add(key, value);
    }
    out.push(object("type", "function", "function", std::move(function)));
  }
  return out;
}

Result<JsonValue> choice_of(const JsonValue* choice, bool& parallel) {
  if (choice == nullptr) return JsonValue();
  const JsonValue* one = choice->find("disable_parallel_tool_use");
  if (one != nullptr) parallel = !one->as_bool("").value_or(false);
  const JsonValue* type = choice->find("type");
  if (type == nullptr || !type->is_string())
    return invalid(cat("tool_choice needs a type, \"auto\" or another; got ", choice->describe()));
  return *choice;
}

// The turns of one message. Its blocks are texts, calls (tool_use), results of calls (tool_result,
// each a separate turn), and thinking.
Status add_blocks(const Service& service, const JsonValue& message, const std::string& where,
                  std::vector<ChatTurn>& out) {
  ChatTurn turn;
  turn.role = message.find("role")->text();
  bool has_text = false;
  for (const JsonValue& block : message.find("content")->elements()) {
    const JsonValue *type = block.find("type"), *content = block.find("content");
    const std::string kind = type != nullptr ? type->text() : "";
    const auto text = [&](const char* key) {
      const JsonValue* value = block.find(key);
      return value != nullptr ? value->text() : std::string();
    };
    if (kind == "tool_result") {
      ChatTurn result;
      result.role = "tool";
      result.tool_call_id = text("tool_use_id");
      if (content != nullptr) {
        LOOM_ASSIGN(result.content, service.turn_text(*content, where + ".content"));
      }
      out.push_back(std::move(result));
    } else if (kind == "tool_use") {
      const JsonValue* input = block.find("input");
      turn.tool_calls.push_back(
          {text("id"), text("name"), input != nullptr ? dump_json(*input) : "{}"});
    } else if (kind == "thinking") {
      turn.reasoning += text("thinking");
    } else {
      LOOM_ASSIGN(const std::string more, content_text(list(block), where + ".content"));
      if (!turn.content.empty()) turn.content += service.separator();
      turn.content += more;
      has_text = true;
    }
  }
  if (has_text || !turn.tool_calls.empty()) out.push_back(std::move(turn));
  return {};
}

Result<std::vector<ChatTurn>> turns_of(Service& service, const JsonValue& messages) {
  LOOM_TRY(service.writes());
  std::vector<ChatTurn> out;
  for (size_t i = 0; i < messages.elements().size(); ++i) {
    const JsonValue& message = messages.elements()[i];
    const JsonValue *role = message.find("role"), *content = message.find("content");
    const std::string where = cat("messages[", i, "]");
    if (role != nullptr && role->is_string() && content != nullptr && content->is_array()) {
      LOOM_TRY(add_blocks(service, message, where, out));
      continue;
    }
    LOOM_ASSIGN(ChatTurn one, service.turn(message, where));
    out.push_back(std::move(one));
  }
  if (out.empty()) return service.turns(messages);
  return out;
}

Result<Request> read(Service& service, const JsonValue& body, const HttpReply& reply) {
  Request request;
  request.text.options.sampler.temperature = 1.0f;
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (request.messages == nullptr) return invalid("messages is missing: a list of messages");
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  LOOM_ASSIGN(std::vector<ChatTurn> turns, turns_of(service, *request.messages));
  std::string system;
  if (request.system != nullptr) {
    LOOM_ASSIGN(system, service.turn_text(*request.system, "system"));
  }
  if (!system.empty()) turns.insert(turns.begin(), {"system", std::move(system)});
  ToolFields fields;
  LOOM_ASSIGN(const JsonValue choice, choice_of(request.choice, fields.parallel));
  JsonValue tools;
  if (request.tools != nullptr) {
    LOOM_ASSIGN(tools, tools_of(*request.tools));
  }
  fields.schema = request.text.options.json_schema;
  fields.tools = &tools;
  fields.choice = &choice;
  JsonValue variables = JsonValue::object();
  if (request.thinks) variables.add("enable_thinking", json(*request.thinks));
  fields.variables = &variables;
  fields.effort = request.effort;
  fields.effort_is_wish = true;
  LOOM_ASSIGN(request.prompt, chat_prompt(service, turns, fields, reply));
  LOOM_TRY(request.prompt.apply(request.text.options));
  request.text.prompts.push_back(request.prompt.ids);
  return request;
}

Status messages(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(Request request, read(service, body, *reply));
  if (request.text.max_tokens < 0)
    return invalid("max_tokens is missing: the most tokens that the answer may have");
  LOOM_ASSIGN(std::vector<ChatReply> replies,
              ChatReply::make(service, request.prompt, 1, "toolu_"));
  auto dialect = std::make_shared<Messages>(service, request, std::move(replies));
  return service.write(std::move(request.text), std::move(dialect), reply);
}

Status count(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(const Request request, read(service, body, *reply));
  send_json(*reply, 200, object("input_tokens", request.text.prompts.front().size()));
  return {};
}

}  // namespace

std::string stop_of(const Model& model, const Generation& text,
                    const std::vector<std::string>& stops) {
  const Result<std::string> whole = model.detokenize(text.token_ids);
  if (!whole.ok()) return {};
  // The text ends at the earliest stop string.
  std::string found;
  size_t at = std::string::npos;
  for (const std::string& stop : stops) {
    const size_t here = whole->find(stop);
    if (here < at || (here == at && here != std::string::npos && stop.size() < found.size())) {
      at = here;
      found = stop;
    }
  }
  return found;
}

void add_anthropic(std::vector<Route>& routes) {
  const auto schema = [] { return schema_of<Request>(fields()); };
  routes.push_back(text_route("/v1/messages", messages, errors(), schema));
  routes.push_back(text_route("/v1/messages/count_tokens", count, errors(), schema));
}

}  // namespace loom::core
