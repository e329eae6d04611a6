// Conversations: turns to template inputs, and replies read back.
#include "api/language/reply.hpp"

#include <utility>

#include "api/engine/impl.hpp"
#include "api/language/chat_messages.hpp"
#include "base/text.hpp"
#include "chat/call_grammar.hpp"
#include "chat/reply_reader.hpp"
#include "grammar/schemas/json_schema.hpp"
#include "loom/language_model.hpp"

namespace loom {
namespace core {
namespace {

// A JSON text of the options; may be null.
Result<JsonValue> option_json(const std::string& text, std::string_view name, bool array) {
  if (text.empty()) return JsonValue();
  LOOM_ASSIGN(JsonValue json, parse_json(text, name));
  if (array ? json.is_array() : json.is_object()) return json;
  return invalid(cat("must be a JSON ", array ? "array" : "object", ", not ", json.describe()),
                 std::string(name));
}

JsonValue call_json(const ToolCall& call) {
  JsonValue function, made;
  function.add("name", JsonValue::string(call.name));
  function.add("arguments", arguments_json(call.arguments));
  if (!call.id.empty()) made.add("id", JsonValue::string(call.id));
  made.add("type", JsonValue::string("function"));
  made.add("function", std::move(function));
  return made;
}

JsonValue parts_json(const std::vector<std::string>& parts) {
  JsonValue all = JsonValue::array();
  for (const std::string& part : parts) {
    all.push(JsonValue::object(
        {{"type", JsonValue::string("text")}, {"text", JsonValue::string(part)}}));
  }
  return all;
}

Result<ChatMessage> message_of(const ChatTurn& turn) {
  ChatMessage message;
  message.role = turn.role;
  message.content = turn.content;
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty()) message.more.add(key, JsonValue::string(text));
  };
  if (!turn.parts.empty()) message.more.add("content", parts_json(turn.parts));
  if (turn.null_content) message.more.add("content", JsonValue());
  add_text("thinking", turn.reasoning);  // gpt-oss's name; transformers gives both
  add_text("reasoning_content", turn.reasoning);
  add_text("tool_call_id", turn.tool_call_id);
  add_text("name", turn.name);
  if (!turn.tool_calls.empty()) {
    JsonValue calls;
    for (const ToolCall& call : turn.tool_calls) calls.push(call_json(call));
    message.more.add("tool_calls", std::move(calls));
  }
  LOOM_ASSIGN(const JsonValue more, option_json(turn.more, "more", false));
  for (const auto& [key, value] : more.members())
    if (key != "role" && key != "content") message.more.add(key, value);
  return message;
}

// Tools in the form that templates expect, from either input form.
JsonValue wrapped_tools(const JsonValue& tools) {
  if (!tools.is_array()) return tools;
  JsonValue all = JsonValue::array();
  for (const JsonValue& tool : tools.elements()) {
    if (tool.find("function") != nullptr) {
      all.push(tool);
      continue;
    }
    JsonValue wrapped;
    wrapped.add("type", JsonValue::string("function"));
    wrapped.add("function", tool);
    all.push(std::move(wrapped));
  }
  return all;
}

// Whether the prompt leaves the model inside of reasoning.
bool ends_thinking(std::string_view prompt, const ToolFormat& format) {
  while (!prompt.empty() && (prompt.back() == '\n' || prompt.back() == ' '))
    prompt.remove_suffix(1);
  return prompt.ends_with(format.think_open);
}

}  // namespace

Result<std::vector<ChatMessage>> turn_messages(std::span<const ChatTurn> turns) {
  std::vector<ChatMessage> messages;
  for (const ChatTurn& turn : turns) {
    LOOM_ASSIGN(ChatMessage message, message_of(turn));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<ChatInputs> chat_inputs(std::vector<ChatMessage> messages, const ChatOptions& options) {
  ChatInputs inputs;
  inputs.messages = std::move(messages);
  inputs.add_generation_prompt = options.reply;
  inputs.continue_final_message = options.continue_final_message;
  LOOM_ASSIGN(const JsonValue tools, option_json(options.tools, "tools", true));
  LOOM_ASSIGN(const Tools checked, Tools::read(tools));
  if (!checked.all().empty()) inputs.tools = wrapped_tools(tools);
  LOOM_ASSIGN(inputs.documents, option_json(options.documents, "documents", true));
  LOOM_ASSIGN(inputs.variables, option_json(options.variables, "variables", false));
  return inputs;
}

}  // namespace core

struct ReplyParser::Impl {
  core::ReplyReader reader;
  std::vector<ReplyPiece> pieces;
  ParsedReply reply;
  core::ReplyReader::Sink sink;

  Impl(const core::ToolFormat& format, core::Tools tools, bool thinking)
      : reader(format, std::move(tools), thinking) {
    using Kind = core::ReplyReader::Kind;
    sink = [this](Kind kind, std::string_view text, int call) {
      const auto as = static_cast<ReplyPiece::Kind>(kind);
      const bool goes_on = !pieces.empty() && pieces.back().kind == as &&
                           pieces.back().call == call && kind != Kind::call;
      if (goes_on) {
        pieces.back().text += text;
      } else {
        pieces.push_back({as, std::string(text), call});
      }
    };
  }

  std::vector<ReplyPiece> take() {
    reply.text = reader.text();
    reply.reasoning = reader.reasoning();
    reply.calls.clear();
    for (const core::ReadCall& call : reader.calls())
      reply.calls.push_back({"", call.name, call.arguments, call.problem});
    return std::exchange(pieces, {});
  }
};

ReplyParser::ReplyParser(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;
ReplyParser& ReplyParser::operator=(ReplyParser&&) noexcept = default;
ReplyParser::~ReplyParser() = default;

std::vector<ReplyPiece> ReplyParser::feed(std::string_view text) {
  impl_->reader.feed(text, impl_->sink);
  return impl_->take();
}

std::vector<ReplyPiece> ReplyParser::finish() {
  impl_->reader.finish(impl_->sink);
  return impl_->take();
}

const ParsedReply& ReplyParser::reply() const {
  return impl_->reply;
}

std::string Model::tool_format() const {
  return std::string(core::tool_format(impl_->model.chat_source()).name);
}

Result<ReplyParser> Model::reply_parser(std::string_view prompt, std::string_view tools) const {
  LOOM_ASSIGN(const core::JsonValue json, core::option_json(std::string(tools), "tools", true));
  LOOM_ASSIGN(core::Tools read, core::Tools::read(json));
  const core::ToolFormat& format = core::prompt_format(impl_->model.chat_source(), !tools.empty());
  const bool thinking = core::ends_thinking(prompt, format);
  return ReplyParser(std::make_unique<ReplyParser::Impl>(format, std::move(read), thinking));
}

Result<std::string> Model::read_reply(std::string_view text, std::string_view prompt,
                                      std::string_view tools) const {
  LOOM_ASSIGN(ReplyParser parser, reply_parser(prompt, tools));
  parser.feed(text);
  parser.finish();
  return core::reply_json(parser.reply(), prompt, text);
}

Result<std::string> Model::call_grammar(std::string_view prompt, std::string_view tools,
                                        const CallRules& rules) const {
  LOOM_ASSIGN(const core::JsonValue json, core::option_json(std::string(tools), "tools", true));
  LOOM_ASSIGN(const core::Tools read, core::Tools::read(json));
  const std::string& source = impl_->model.chat_source();
  const core::ToolFormat& format = core::prompt_format(source, true);
  core::Thinking thinking = core::Thinking::never;
  if (source.find(format.think_open) != std::string::npos) thinking = core::Thinking::may;
  if (core::ends_thinking(prompt, format)) thinking = core::Thinking::already;
  for (const core::Tool& tool : read.all()) {
    if (!rules.required && !tool.strict) continue;
    core::grammar::Builder builder;
    const Result<core::grammar::ExprId> held =
        core::grammar::add_json_schema(builder, core::held_schema(tool));
    if (held.ok()) continue;
    Error error = held.error();
    error.message =
        core::cat("parameters of ", core::printable(tool.name), error.where, ": ", error.message);
    error.where.clear();
    return error;
  }
  return core::call_grammar(format, read, rules, thinking);
}

}  // namespace loom
