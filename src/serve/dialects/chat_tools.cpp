#include "serve/dialects/chat_tools.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "chat/think_splitter.hpp"
#include "chat/tool_format.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {
namespace {

// A request's settings for calls: whether tools are offered, and the constraints on replies.
struct ToolChoice {
  bool offers = true;
  CallRules rules;
};

Result<std::string> name_in(const JsonValue& choice) {
  const JsonValue* function = choice.find("function");
  const JsonValue* name = (function != nullptr ? *function : choice).find("name");
  if (name == nullptr || !name->is_string())
    return invalid(cat("tool_choice needs the name of a function; got ", choice.describe()));
  return name->text();
}

// {"mode", "tools"}, either direct or inside "allowed_tools".
Status take_allowed(const JsonValue& choice, ToolChoice& to) {
  const JsonValue* inner = choice.find("allowed_tools");
  const JsonValue& all = inner != nullptr ? *inner : choice;
  const JsonValue *mode = all.find("mode"), *tools = all.find("tools");
  if (tools == nullptr || !tools->is_array() || tools->elements().empty())
    return invalid("tool_choice needs a list of allowed tools");
  to.rules.required = mode != nullptr && mode->text() == "required";
  for (const JsonValue& tool : tools->elements()) {
    LOOM_ASSIGN(std::string name, name_in(tool));
    to.rules.allowed.push_back(std::move(name));
  }
  return {};
}

Result<ToolChoice> choice_of(const ToolFields& fields) {
  ToolChoice out;
  out.rules.parallel = fields.parallel;
  if (fields.choice == nullptr || fields.choice->is_null()) return out;
  const JsonValue& choice = *fields.choice;
  const JsonValue* type = choice.find("type");
  const std::string kind = type != nullptr ? type->text() : choice.text();
  out.offers = kind != "none";
  out.rules.required = kind == "required" || kind == "any";
  if (kind == "none" || kind == "auto" || out.rules.required) return out;
  if (kind == "allowed_tools") {
    LOOM_TRY(take_allowed(choice, out));
    return out;
  }
  if (kind != "function" && kind != "tool") {
    return invalid(cat("tool_choice must be \"none\", \"auto\", \"required\" or a function; got ",
                       choice.describe()));
  }
  LOOM_ASSIGN(std::string name, name_in(choice));
  out.rules.required = true;
  out.rules.parallel = false;  // a named function is called once
  out.rules.allowed.push_back(std::move(name));
  return out;
}

Result<ToolCall> call_of(const JsonValue& json, const std::string& where) {
  const JsonValue* function = json.find("function");
  const JsonValue* name = function != nullptr ? function->find("name") : nullptr;
  if (name == nullptr || !name->is_string())
    return invalid(cat(where, " needs a function with a name; got ", json.describe()));
  ToolCall call;
  call.name = name->text();
  if (const JsonValue* id = json.find("id")) call.id = id->text();
  const JsonValue* arguments = function->find("arguments");
  if (arguments == nullptr || arguments->is_null()) {
    call.arguments = "{}";
  } else {
    call.arguments = arguments->is_string() ? arguments->text() : dump_json(*arguments);
  }
  return call;
}

// A started reply is placed where replies begin. A continuation that the request did not ask for is
// not placed where the template lets a model think first.
Status render(const Service& service, const std::vector<ChatTurn>& turns, const ToolFields& fields,
              ChatOptions& options, std::string& text) {
  const bool asked = fields.continues.value_or(false);
  if (asked && fields.begins_reply.value_or(false))
    return invalid("continue_final_message and add_generation_prompt; ask for one of them");
  const bool can = !turns.empty() && turns.back().role == "assistant" &&
                   turns.back().tool_calls.empty() && turns.back().reasoning.empty();
  if (asked && !can)
    return invalid("continue_final_message needs a last message that an assistant wrote");
  const bool unsaid = !fields.continues.has_value() && !fields.begins_reply.has_value();
  if (asked || (unsaid && can && service.prefill())) {
    options.reply = true;
    const std::span<const ChatTurn> before(turns.data(), turns.size() - 1);
    LOOM_ASSIGN(text, service.model().render_chat(before, options));
    if (asked || !opens_thinking(text)) {
      text += turns.back().content;
      return {};
    }
  }
  options.reply = fields.begins_reply.value_or(true);
  LOOM_ASSIGN(text, service.model().render_chat(turns, options));
  return {};
}

// Instructions about tools for a model whose template has none, in the call format that most models
// were trained with.
std::string prompt_tools(const JsonValue& tools) {
  std::string out =
      "You may call functions to answer. These are known, one JSON object on each line:\n<tools>\n";
  for (const JsonValue& tool : tools.elements()) out += dump_json(tool) + "\n";
  return out +
         "</tools>\nTo call one, write its name and arguments as JSON between marks, and nothing "
         "else:\n<tool_call>\n{\"name\": NAME, \"arguments\": {...}}\n</tool_call>";
}

// A conversation for such a template. The first turn lists the tools; calls and results become text
// of the assistant and of the user.
std::vector<ChatTurn> prompt_turns(std::vector<ChatTurn> turns, const JsonValue& tools) {
  for (ChatTurn& turn : turns) {
    for (const ToolCall& call : turn.tool_calls) {
      const JsonValue name = JsonValue::string(call.name);
      turn.content +=
          cat(turn.content.empty() ? "" : "\n", "<tool_call>\n{\"name\": ", dump_json(name),
              ", \"arguments\": ", call.arguments, "}\n</tool_call>");
    }
    turn.null_content = turn.null_content && turn.tool_calls.empty();
    turn.tool_calls.clear();
    if (turn.role != "tool") continue;
    turn.role = "user";
    turn.content = cat("<tool_response>\n", turn.content, "\n</tool_response>");
  }
  const bool tells = !tools.elements().empty();
  if (tells && (turns.empty() || turns.front().role != "system"))
    turns.insert(turns.begin(), ChatTurn{"system", ""});
  if (!tells) return turns;
  std::string& first = turns.front().content;
  first += cat(first.empty() ? "" : "\n\n", prompt_tools(tools));
  return turns;
}

void add_unsaid(JsonValue& to, std::string_view key, const JsonValue& value) {
  if (to.find(key) == nullptr) to.add(std::string(key), value);
}

// Templates take the effort as a word, or as a switch.
Status add_effort(const Service& service, const ToolFields& fields, JsonValue& to) {
  if (fields.effort.empty()) return {};
  const std::string_view source = service.model().chat_template();
  const auto knows = [&](std::string_view word) { return source.find(word) != std::string::npos; };
  if (knows("reasoning_effort")) {
    add_unsaid(to, "reasoning_effort", json(std::string_view(fields.effort)));
    return {};
  }
  if (knows("enable_thinking")) {
    add_unsaid(to, "enable_thinking", json(fields.effort != "none"));
    return {};
  }
  const bool idle = fields.effort == "none" && !knows(tool_format(source).think_open);
  if (idle || fields.effort_is_wish) return {};
  return unsupported(cat("the reasoning effort \"", fields.effort,
                         "\" cannot be kept: the chat template of ", printable(service.name()),
                         " knows none; leave reasoning_effort out"));
}

// The template's variables: those of the request, then those of the server. JSON, or "" if there
// are none.
Result<std::string> variables_of(const Service& service, const ToolFields& fields) {
  JsonValue all = JsonValue::object();
  if (fields.variables != nullptr && !fields.variables->is_null()) {
    if (!fields.variables->is_object())
      return invalid(
          cat("chat_template_kwargs must be an object; got ", fields.variables->describe()));
    all = *fields.variables;
  }
  LOOM_TRY(add_effort(service, fields, all));
  if (!service.variables().empty()) {
    LOOM_ASSIGN(const JsonValue unsaid, parse_json(service.variables(), "variables"));
    for (const auto& [key, value] : unsaid.members()) add_unsaid(all, key, value);
  }
  return all.members().empty() ? std::string() : dump_json(all);
}

}  // namespace

Status take_effort(const JsonValue& value, std::string_view name, std::string& to) {
  constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                           "high", "xhigh",   "max"};
  to = value.text();
  if (std::ranges::find(kEfforts, to) != std::end(kEfforts)) return {};
  return invalid(cat(
      name,
      " must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\" or \"max\"; got ",
      value.describe()));
}

Result<ChatPrompt> chat_prompt(const Service& service, const std::vector<ChatTurn>& request_turns,
                               const ToolFields& fields, const HttpReply& reply) {
  const std::vector<ChatTurn> given = service.with_own_turns(request_turns);
  // A template copies texts many times, so texts that cannot fit are refused first.
  for (const ChatTurn& turn : given) LOOM_TRY(service.check_text(turn.content));
  ChatPrompt prompt;
  ChatOptions options;
  const bool any = fields.tools != nullptr && !fields.tools->elements().empty();
  const bool odd = fields.tools != nullptr && !fields.tools->is_null() && !fields.tools->is_array();
  if (odd) return invalid(cat("tools must be a list of functions; got ", fields.tools->describe()));
  const ToolFormat& format = tool_format(service.model().chat_template());
  LOOM_ASSIGN(ToolChoice choice, choice_of(fields));
  choice.rules.otherwise = fields.schema;
  for (size_t i = 0; any && i < fields.tools->elements().size(); ++i) {
    const JsonValue* type = fields.tools->elements()[i].find("type");
    if (type == nullptr || type->text() == "function") continue;
    return unsupported(cat("tools[", i, "] is of type ", type->describe(),
                           "; functions are called here, and no tool runs in this server"));
  }
  if (!any && choice.rules.required)
    return invalid("tool_choice asks for a call, and there are no tools");
  if (any && choice.offers) {
    const Result<Tools> read = Tools::read(*fields.tools);
    if (!read.ok()) return invalid(cat(read.error().where, ": ", read.error().message));
    prompt.tools = dump_json(*fields.tools);
  }
  // A conversation may have calls although its tools are no longer offered.
  const bool called = std::ranges::any_of(
      given, [](const ChatTurn& turn) { return turn.role == "tool" || !turn.tool_calls.empty(); });
  const bool in_prompt =
      format.syntax == ToolFormat::Syntax::none && (called || !prompt.tools.empty());
  const JsonValue offered = prompt.tools.empty() ? JsonValue::array() : *fields.tools;
  const std::vector<ChatTurn> turns = in_prompt ? prompt_turns(given, offered) : given;
  LOOM_ASSIGN(options.variables, variables_of(service, fields));
  if (!in_prompt) options.tools = prompt.tools;
  LOOM_TRY(render(service, turns, fields, options, prompt.text));
  LOOM_ASSIGN(prompt.ids, service.tokenize(prompt.text, reply, false));
  const std::string_view source = service.model().chat_template();
  prompt.has_replies = !prompt.tools.empty() || source.find(format.think_open) != std::string::npos;
  prompt.parallel = choice.rules.parallel;
  if (!prompt.tools.empty()) {
    LOOM_ASSIGN(prompt.grammar,
                service.model().call_grammar(prompt.text, prompt.tools, choice.rules));
  }
  return prompt;
}

Status ChatPrompt::apply(GenerateOptions& options) const {
  options.special_text = has_replies;
  if (grammar.empty()) return {};
  if (!options.grammar.empty())
    return invalid("tools that replies are held to and a grammar; ask for one of them");
  options.json_schema.clear();  // is part of `grammar`
  options.grammar = grammar;
  return {};
}

namespace {

// The template's rendering of a message with two parts; empty if it refuses them.
std::string rendered_parts(const Model& model, const char* first, const char* second) {
  const ChatTurn turn{.role = "user", .parts = {first, second}};
  return model.render_chat(std::span(&turn, 1)).value_or("");
}

}  // namespace

std::string_view part_separator(const Model& model) {
  const std::string text = rendered_parts(model, "first-part", "second-part");
  // The separator of a template that reads lists of parts; others print the list, or nothing.
  for (const std::string_view separator : {"", " ", "\n\n"}) {
    if (text.find(cat("first-part", separator, "second-part")) != std::string::npos)
      return separator;
  }
  return "\n";
}

bool trims_parts(const Model& model) {
  const std::string text = rendered_parts(model, "first-part ", " second-part");
  return text.find(cat("first-part", part_separator(model), "second-part")) != std::string::npos;
}

Result<std::string> trimmed_parts(const JsonValue& content, std::string_view where,
                                  std::string_view separator) {
  constexpr std::string_view kSpaces = " \t\n\r\v\f";
  std::string out;
  for (const JsonValue& part : content.elements()) {
    LOOM_ASSIGN(const std::string text, content_text(JsonValue::array({part}), where));
    const size_t first = text.find_first_not_of(kSpaces);
    if (!out.empty()) out += separator;
    if (first != std::string::npos)
      out += text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
  }
  return out;
}

namespace {

// Members without a field of ChatTurn, which templates may read.
std::string more_of(const JsonValue& message) {
  constexpr std::string_view kKnown[] = {
      "role",     "content",           "tool_call_id", "name",  "tool_name",    "tool_calls",
      "thinking", "reasoning_content", "images",       "audio", "function_call"};
  JsonValue more = JsonValue::object();
  for (const auto& [key, value] : message.members()) {
    const bool known = std::ranges::find(kKnown, key) != std::end(kKnown);
    if (!known && !value.is_null()) more.add(key, value);
  }
  return more.members().empty() ? std::string() : dump_json(more);
}

}  // namespace

Status take_turn_fields(const JsonValue& message, const std::string& where, ChatTurn& turn) {
  const auto text = [&](const char* key, std::string& to) -> Status {
    const JsonValue* value = message.find(key);
    if (value == nullptr || value->is_null()) return {};
    return take_text(*value, cat(where, ".", key), to);
  };
  LOOM_TRY(text("tool_call_id", turn.tool_call_id));
  LOOM_TRY(text("name", turn.name));
  LOOM_TRY(text("tool_name", turn.name));
  LOOM_TRY(text("reasoning_content", turn.reasoning));
  LOOM_TRY(text("thinking", turn.reasoning));
  turn.more = more_of(message);
  const JsonValue* calls = message.find("tool_calls");
  if (calls == nullptr || calls->is_null()) return {};
  if (!calls->is_array())
    return invalid(cat(where, ".tool_calls must be a list; got ", calls->describe()));
  for (size_t i = 0; i < calls->elements().size(); ++i) {
    LOOM_ASSIGN(ToolCall call, call_of(calls->elements()[i], cat(where, ".tool_calls[", i, "]")));
    turn.tool_calls.push_back(std::move(call));
  }
  return {};
}

Result<std::vector<ChatReply>> ChatReply::make(const Service& service, const ChatPrompt& prompt,
                                               size_t count, std::string_view prefix) {
  std::vector<ChatReply> replies;
  for (size_t i = 0; i < count && prompt.has_replies; ++i) {
    LOOM_ASSIGN(ReplyParser parser, service.model().reply_parser(prompt.text, prompt.tools));
    replies.push_back(ChatReply(std::move(parser), prompt.parallel, prefix));
  }
  return replies;
}

std::vector<ReplyPiece> ChatReply::counted(std::vector<ReplyPiece> pieces) {
  if (!parallel_) std::erase_if(pieces, [](const ReplyPiece& piece) { return piece.call > 0; });
  return pieces;
}

std::vector<ReplyPiece> ChatReply::feed(std::string_view text) {
  return counted(parser_.feed(text));
}

std::vector<ReplyPiece> ChatReply::finish() {
  return counted(parser_.finish());
}

const std::string& ChatReply::id(int32_t call) {
  while (ids_.size() <= static_cast<size_t>(call)) ids_.push_back(new_id(prefix_));
  return ids_[static_cast<size_t>(call)];
}

ParsedReply ChatReply::reply() const {
  ParsedReply reply = parser_.reply();
  if (!parallel_ && reply.calls.size() > 1) reply.calls.resize(1);
  for (size_t i = 0; i < reply.calls.size() && i < ids_.size(); ++i) reply.calls[i].id = ids_[i];
  return reply;
}

}  // namespace loom::core
