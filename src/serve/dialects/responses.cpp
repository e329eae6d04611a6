// OpenAI's responses: one answer to a text or a conversation, whole or as numbered events. An
// answer is a list of items: messages, reasoning, function calls.
#include "base/text.hpp"
#include "serve/dialects/chat_tools.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/openapi.hpp"
#include "serve/dialects/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* input = nullptr;
  std::string instructions;
  ToolFields tools;
  ChatPrompt prompt;
};

// {"effort", "summary"}. Reasoning is sent in full, so it has no summary.
Status take_reasoning(const JsonValue& value, std::string_view name, Request& r) {
  for (const auto& [key, one] : value.members()) {
    const std::string called = cat(name, ".", key);
    if (one.is_null() || (key.ends_with("summary") && one.text() == "auto")) continue;
    if (key != "effort") return unsupported(cat(called, " is not supported here; leave it out"));
    LOOM_TRY(take_effort(one, called, r.tools.effort));
  }
  return {};
}

Status take_text_format(const JsonValue& value, std::string_view name, Request& r) {
  const JsonValue* verbosity = value.find("verbosity");
  if (verbosity != nullptr) LOOM_TRY(take_verbosity(*verbosity, cat(name, ".verbosity"), r.text));
  const JsonValue* format = value.find("format");
  if (format == nullptr || format->is_null()) return {};
  return take_format(*format, cat(name, ".format"), r.text);
}

// Converts {"type": "function", "name", "parameters", ..} to the form of chat completions.
Result<JsonValue> tools_of(const JsonValue& tools) {
  JsonValue out = JsonValue::array();
  for (const JsonValue& tool : tools.elements()) {
    const JsonValue* type = tool.find("type");
    if (type != nullptr && type->text() != "function") {
      return make_error(Code::unsupported,
                        cat("tools may be functions; got one of type ", type->describe()));
    }
    JsonValue function = JsonValue::object();
    for (const auto& [key, value] : tool.members()) {
      if (key != "type" && !value.is_null()) function.add(key, value);
    }
    out.push(object("type", "function", "function", std::move(function)));
  }
  return out;
}

const std::vector<BodyField<Request>>& fields() {
  static const std::vector<BodyField<Request>> table = {
      json_field("input", &Request::input),
      string_field("instructions", &Request::instructions),
      text_field<Request>("max_output_tokens", take_max_tokens),
      sampler_field<Request>("temperature", "temperature"),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stream", take_stream),
      text_field<Request>("resumable", take_resumable),
      text_field<Request>("cache_salt", take_cache_salt),
      text_field<Request>("return_progress", take_progress),
      text_field<Request>("timings_per_token", take_timings),
      {"text", take_text_format},
      {"tools",
       [](const JsonValue& v, std::string_view, Request& r) {
         r.tools.tools = &v;
         return Status();
       }},
      {"tool_choice",
       [](const JsonValue& v, std::string_view, Request& r) {
         r.tools.choice = &v;
         return Status();
       }},
      {"parallel_tool_calls", [](const JsonValue& v, std::string_view name,
                                 Request& r) { return take_bool(v, name, r.tools.parallel); }},
      off_field<Request>("previous_response_id"),
      off_field<Request>("conversation"),
      off_field<Request>("background"),
      off_field<Request>("top_logprobs"),
      ignored_field<Request>("model"),
      ignored_field<Request>("store"),
      ignored_field<Request>("metadata"),
      ignored_field<Request>("user"),
      ignored_field<Request>("include"),
      {"reasoning", take_reasoning},
      ignored_field<Request>("truncation"),
      ignored_field<Request>("service_tier"),
      ignored_field<Request>("safety_identifier"),
      ignored_field<Request>("prompt_cache_key"),
  };
  return table;
}

// A part of an answer in progress.
struct Item {
  ReplyPiece::Kind kind;  // text, reasoning or call
  std::string id, call_id, name, text;
};

class Responses final : public Dialect {
 public:
  // `replies`: one, or none if the reply is text only.
  Responses(const Service& service, const Request& request, std::vector<ChatReply> replies)
      : service_(service),
        instructions_(request.instructions),
        sampler_(request.text.options.sampler),
        max_tokens_(request.text.max_tokens),
        prompt_(static_cast<int64_t>(request.text.prompts.front().size())),
        parallel_(request.tools.parallel),
        replies_(std::move(replies)) {
    if (request.tools.tools != nullptr) tools_ = *request.tools.tools;
    if (request.tools.choice != nullptr) choice_ = *request.tools.choice;
  }

  std::string first() override {
    std::string out = event("response.created", "response", response("in_progress", nullptr));
    out += event("response.in_progress", "response", response("in_progress", nullptr));
    // A reply without calls is one message, open from the start.
    if (replies_.empty()) out += open(ReplyPiece{});
    return out;
  }
  std::string piece(size_t, std::string_view text, const Token*) override {
    return pieces(read(text));
  }
  std::string last(size_t, const TextEnd& end) override {
    const std::string rest = close_all();
    const char* status = status_of(end);
    return rest + event(cat("response.", status), "response", response(status, &end));
  }
  std::string on_error(const Error& error) override {
    return event("error", "code", kind_of(error).type, "message",
                 std::string_view(message_of(error)), "param", JsonValue());
  }
  JsonValue complete(const std::vector<TextEnd>& texts) override {
    const TextEnd& end = texts.front();
    pieces(read(end.text.text));
    close_all();
    return response(status_of(end), &end);
  }
  std::string progress(size_t, const JsonValue& prompt_progress) override {
    return event("response.in_progress", "response", response("in_progress", nullptr),
                 "prompt_progress", prompt_progress);
  }
  JsonValue error(int status, std::string_view type, const Error& error) const override {
    return openai_error(status, type, error);
  }
  std::string_view id() const override { return id_; }

 private:
  using Kind = ReplyPiece::Kind;
  static const char* status_of(const TextEnd& end) {
    const bool cut = end.text.stop == StopReason::length || end.text.stop == StopReason::context;
    return cut ? "incomplete" : "completed";
  }
  // Events are numbered as they are created: one statement each.
  template <class... Members>
  std::string event(std::string_view name, Members... members) {
    JsonValue out = object("type", name, "sequence_number", sequence_++);
    add_members(out, std::move(members)...);
    add_timings(out);
    return sse(out, name);
  }
  // An event of the open item.
  template <class... Members>
  std::string about(std::string_view name, Members... members) {
    return event(name, "item_id", std::string_view(items_.back().id), "output_index",
                 items_.size() - 1, std::move(members)...);
  }
  std::string item_event(std::string_view name, const char* status) {
    return event(name, "output_index", items_.size() - 1, "item", json_of(items_.back(), status));
  }

  std::vector<ReplyPiece> read(std::string_view text) {
    if (!replies_.empty()) return replies_[0].feed(text);
    return {{Kind::text, std::string(text), -1}};
  }
  std::string pieces(const std::vector<ReplyPiece>& all) {
    std::string out;
    for (const ReplyPiece& piece : all) {
      const bool goes_on =
          open_ && (piece.kind == Kind::arguments ||
                    (piece.kind == items_.back().kind && piece.kind != Kind::call));
      if (!goes_on) {
        out += close();
        out += open(piece);
      }
      if (piece.kind == Kind::call) continue;
      items_.back().text += piece.text;
      out += delta(piece);
    }
    return out;
  }
  std::string delta(const ReplyPiece& piece) {
    const std::string_view text = piece.text;
    if (piece.kind == Kind::arguments)
      return about("response.function_call_arguments.delta", "delta", text);
    if (piece.kind == Kind::reasoning)
      return about("response.reasoning_text.delta", "content_index", 0, "delta", text);
    return about("response.output_text.delta", "content_index", 0, "delta", text, "logprobs",
                 JsonValue::array());
  }
  std::string open(const ReplyPiece& piece) {
    Item item{piece.kind, "", "", "", ""};
    item.id = new_id(piece.kind == Kind::call ? "fc_" : piece.kind == Kind::text ? "msg_" : "rs_");
    if (piece.kind == Kind::call) {
      item.call_id = replies_[0].id(piece.call);
      item.name = piece.text;
    }
    items_.push_back(std::move(item));
    open_ = true;
    std::string out = item_event("response.output_item.added", "in_progress");
    if (piece.kind != Kind::call)
      out += about("response.content_part.added", "content_index", 0, "part", part(piece.kind, ""));
    return out;
  }
  std::string close() {
    if (!std::exchange(open_, false)) return {};
    const Item& item = items_.back();
    const std::string_view text = item.text;
    std::string out;
    if (item.kind == Kind::call) {
      out = about("response.function_call_arguments.done", "name", std::string_view(item.name),
                  "arguments", text);
    } else {
      out = item.kind == Kind::text
                ? about("response.output_text.done", "content_index", 0, "text", text, "logprobs",
                        JsonValue::array())
                : about("response.reasoning_text.done", "content_index", 0, "text", text);
      out += about("response.content_part.done", "content_index", 0, "part", part(item.kind, text));
    }
    return out + item_event("response.output_item.done", "completed");
  }
  // An answer has at least one item, which may be empty.
  std::string close_all() {
    std::string out;
    if (!replies_.empty()) out = pieces(replies_[0].finish());
    if (items_.empty()) out += open(ReplyPiece{});
    return out + close();
  }

  static JsonValue part(Kind kind, std::string_view text) {
    if (kind == Kind::reasoning) return object("type", "reasoning_text", "text", text);
    return object("type", "output_text", "text", text, "annotations", JsonValue::array(),
                  "logprobs", JsonValue::array());
  }
  JsonValue json_of(const Item& item, const char* status) const {
    const std::string_view id = item.id;
    if (item.kind == Kind::call) {
      return object("id", id, "type", "function_call", "status", status, "call_id",
                    std::string_view(item.call_id), "name", std::string_view(item.name),
                    "arguments", std::string_view(item.text));
    }
    const bool begun = std::string_view(status) != "in_progress";
    JsonValue content = begun ? list(part(item.kind, item.text)) : JsonValue::array();
    if (item.kind == Kind::reasoning) {
      return object("id", id, "type", "reasoning", "status", status, "summary", JsonValue::array(),
                    "content", std::move(content));
    }
    return object("id", id, "type", "message", "status", status, "role", "assistant", "content",
                  std::move(content));
  }
  JsonValue response(std::string_view status, const TextEnd* end) const {
    JsonValue why;
    if (status == "incomplete") why = object("reason", "max_output_tokens");
    JsonValue output = JsonValue::array();
    // The last item is incomplete if the token limit cut it.
    for (size_t i = 0; end != nullptr && i < items_.size(); ++i) {
      const bool cut = status == "incomplete" && i + 1 == items_.size();
      output.push(json_of(items_[i], cut ? "incomplete" : "completed"));
    }
    JsonValue out =
        object("id", std::string_view(id_), "object", "response", "created_at", created_, "status",
               status, "error", JsonValue(), "incomplete_details", std::move(why), "model",
               std::string_view(service_.name()), "output", std::move(output));
    add_members(out, "instructions",
                instructions_.empty() ? JsonValue() : json(std::string_view(instructions_)),
                "max_output_tokens", max_tokens_ < 0 ? JsonValue() : json(max_tokens_),
                "temperature", static_cast<double>(sampler_.temperature), "top_p",
                static_cast<double>(sampler_.top_p), "seed", static_cast<int64_t>(sampler_.seed),
                "system_fingerprint", std::string_view(service_.fingerprint()),
                "parallel_tool_calls", parallel_, "tool_choice", choice_, "tools", tools_,
                "previous_response_id", JsonValue(), "metadata", JsonValue::object());
    out.add("usage", end == nullptr ? JsonValue() : usage(*end));
    return out;
  }
  JsonValue usage(const TextEnd& end) const {
    const auto written = static_cast<int64_t>(end.text.token_ids.size());
    return object("input_tokens", prompt_, "input_tokens_details",
                  object("cached_tokens", end.cached), "output_tokens", written,
                  "output_tokens_details", object("reasoning_tokens", 0), "total_tokens",
                  prompt_ + written);
  }

  const Service& service_;
  const std::string instructions_;
  const SamplerOptions sampler_;
  const int64_t max_tokens_, prompt_;
  const bool parallel_;
  JsonValue tools_ = JsonValue::array(), choice_ = json("auto");
  std::vector<ChatReply> replies_;
  std::vector<Item> items_;
  bool open_ = false;  // the last item
  const std::string id_ = new_id("resp_");
  const int64_t created_ = unix_seconds();
  int64_t sequence_ = 0;
};

// The turns of items: messages, calls (a turn of the assistant together with the text before them),
// results of calls, and reasoning.
class InputReader {
 public:
  explicit InputReader(const Service& service) : service_(service) {}

  Status add(const JsonValue& item, const std::string& where) {
    const JsonValue* type = item.find("type");
    const std::string kind = type != nullptr ? type->text() : "message";
    if (kind == "function_call") return add_call(item, where);
    if (kind == "function_call_output") return add_result(item, where);
    if (kind == "reasoning") return add_reasoning(item, where);
    if (kind != "message")
      return make_error(Code::unsupported, cat(where, " is of type ", type->describe(),
                                               "; messages, reasoning and calls of functions are "
                                               "read here"));
    LOOM_ASSIGN(ChatTurn turn, service_.turn(item, where));
    turn.reasoning = std::exchange(reasoning_, {});
    turns_.push_back(std::move(turn));
    return {};
  }
  std::vector<ChatTurn> take() { return std::move(turns_); }

 private:
  Status add_call(const JsonValue& item, const std::string& where) {
    ToolCall call;
    LOOM_TRY(text_of(item, "call_id", where, call.id));
    LOOM_TRY(text_of(item, "name", where, call.name));
    LOOM_TRY(text_of(item, "arguments", where, call.arguments));
    if (turns_.empty() || turns_.back().role != "assistant") {
      ChatTurn turn;
      turn.role = "assistant";
      turn.null_content = true;
      turn.reasoning = std::exchange(reasoning_, {});
      turns_.push_back(std::move(turn));
    }
    turns_.back().tool_calls.push_back(std::move(call));
    return {};
  }
  Status add_result(const JsonValue& item, const std::string& where) {
    ChatTurn turn;
    turn.role = "tool";
    LOOM_TRY(text_of(item, "call_id", where, turn.tool_call_id));
    const JsonValue* output = item.find("output");
    if (output == nullptr) return invalid(cat(where, ".output is missing"));
    LOOM_ASSIGN(turn.content, service_.turn_text(*output, where + ".output"));
    turns_.push_back(std::move(turn));
    return {};
  }
  // It belongs to the assistant's next item.
  Status add_reasoning(const JsonValue& item, const std::string& where) {
    const JsonValue* content = item.find("content");
    if (content == nullptr || content->is_null()) return {};
    LOOM_ASSIGN(reasoning_, content_text(*content, where + ".content"));
    return {};
  }
  static Status text_of(const JsonValue& item, const char* key, const std::string& where,
                        std::string& to) {
    const JsonValue* value = item.find(key);
    if (value == nullptr) return invalid(cat(where, ".", key, " is missing"));
    return take_text(*value, cat(where, ".", key), to);
  }

  const Service& service_;
  std::vector<ChatTurn> turns_;
  std::string reasoning_;
};

Result<std::vector<ChatTurn>> turns_of(const Service& service, const Request& request) {
  LOOM_TRY(service.writes());
  if (request.input == nullptr) return invalid("input is missing: a text, or a list of messages");
  std::vector<ChatTurn> turns;
  if (request.input->is_string()) {
    turns.push_back({"user", request.input->text()});
  } else {
    if (!request.input->is_array() || request.input->elements().empty())
      return invalid(
          cat("input must be a text or a list of items; got ", request.input->describe()));
    InputReader reader(service);
    const std::vector<JsonValue>& items = request.input->elements();
    for (size_t i = 0; i < items.size(); ++i) LOOM_TRY(reader.add(items[i], cat("input[", i, "]")));
    turns = reader.take();
    if (turns.empty()) return invalid("input holds no message");
  }
  if (!request.instructions.empty()) turns.insert(turns.begin(), {"system", request.instructions});
  return turns;
}

Result<Request> read(const Service& service, const JsonValue& body, const HttpReply& reply) {
  Request request;
  request.text.options.sampler.temperature = 1.0f;
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  LOOM_ASSIGN(const std::vector<ChatTurn> turns, turns_of(service, request));
  ToolFields tools = request.tools;
  JsonValue functions;
  if (tools.tools != nullptr && tools.tools->is_array()) {
    LOOM_ASSIGN(functions, tools_of(*tools.tools));
    tools.tools = &functions;
  }
  tools.schema = request.text.options.json_schema;
  LOOM_ASSIGN(request.prompt, chat_prompt(service, turns, tools, reply));
  LOOM_TRY(request.prompt.apply(request.text.options));
  request.text.prompts.push_back(request.prompt.ids);
  return request;
}

Status respond(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(Request request, read(service, body, *reply));
  LOOM_ASSIGN(std::vector<ChatReply> replies, ChatReply::make(service, request.prompt, 1, "call_"));
  auto dialect = std::make_shared<Responses>(service, request, std::move(replies));
  return service.write(std::move(request.text), std::move(dialect), reply);
}

Status count(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(const Request request, read(service, body, *reply));
  send_json(*reply, 200,
            object("object", "response.input_tokens", "input_tokens",
                   request.text.prompts.front().size()));
  return {};
}

}  // namespace

void add_responses(std::vector<Route>& routes) {
  const auto schema = [] { return schema_of<Request>(fields()); };
  for (const char* path : {"/v1/responses", "/responses"})
    routes.push_back(text_route(path, respond, openai_errors(), schema));
  for (const char* path : {"/v1/responses/input_tokens", "/responses/input_tokens"})
    routes.push_back(text_route(path, count, openai_errors(), schema));
}

}  // namespace loom::core
