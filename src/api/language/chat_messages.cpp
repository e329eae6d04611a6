// Messages of a conversation as JSON: checks with the location of each mistake, and the form in
// which templates read them.
#include "api/language/chat_messages.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

const JsonValue* set_member(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Error wrong(const std::string& where, std::string_view key, std::string_view must,
            const JsonValue& value) {
  return invalid(cat(where, ".", key, " must be ", must, "; got ", value.describe()));
}

Status check_content(const JsonValue& message, const std::string& where) {
  const JsonValue* content = set_member(message, "content");
  if (content == nullptr || content->is_string()) return {};
  const bool result = message.find("role")->text() == "tool" && content->is_object();
  if (!content->is_array() && !result)
    return wrong(where, "content", "a text, null or a list of parts", *content);
  for (size_t i = 0; i < content->elements().size(); ++i) {
    const JsonValue& part = content->elements()[i];
    if (part.is_string()) continue;
    const std::string at = cat("content[", i, "]");
    if (!part.is_object()) return wrong(where, at, "an object with \"type\"", part);
    const JsonValue* text = part.find("text");
    if (text != nullptr && !text->is_string()) return wrong(where, at + ".text", "a text", *text);
  }
  return {};
}

// A call, either {"function": {"name", "arguments"}} or {"name", "arguments"}.
Result<JsonValue> call_of(const JsonValue& call, const std::string& where) {
  if (!call.is_object()) return invalid(cat(where, " must be an object; got ", call.describe()));
  const JsonValue* function = call.find("function");
  const std::string at = function != nullptr ? where + ".function" : where;
  const JsonValue& inner = function != nullptr ? *function : call;
  const JsonValue* name = inner.find("name");
  if (name == nullptr || !name->is_string())
    return invalid(cat(at, " needs the name of a function; got ", inner.describe()));
  JsonValue read = JsonValue::object();
  for (const auto& [key, value] : inner.members()) {
    const bool text = key == "arguments" && value.is_string();
    if (key == "arguments" && !text && !value.is_object() && !value.is_null())
      return wrong(at, key, "an object or its JSON text", value);
    read.add(key, text ? arguments_json(value.text()) : value);
  }
  if (function == nullptr) return read;
  JsonValue out = JsonValue::object();
  for (const auto& [key, value] : call.members()) out.add(key, key == "function" ? read : value);
  return out;
}

Result<JsonValue> calls_of(const JsonValue& calls, const std::string& where) {
  if (!calls.is_array()) return wrong(where, "tool_calls", "a list of calls", calls);
  JsonValue out = JsonValue::array();
  for (size_t i = 0; i < calls.elements().size(); ++i) {
    LOOM_ASSIGN(JsonValue call, call_of(calls.elements()[i], cat(where, ".tool_calls[", i, "]")));
    out.push(std::move(call));
  }
  return out;
}

Result<ChatMessage> message_of(const JsonValue& json, const std::string& where) {
  if (!json.is_object()) return invalid(cat(where, " must be an object; got ", json.describe()));
  const JsonValue* role = json.find("role");
  if (role == nullptr) return invalid(where + ".role is missing");
  if (!role->is_string()) return wrong(where, "role", "a text", *role);
  LOOM_TRY(check_content(json, where));
  for (const std::string_view key : {std::string_view("tool_call_id"), std::string_view("name"),
                                     kReasoning[0], kReasoning[1], kReasoning[2]}) {
    const JsonValue* value = set_member(json, key);
    if (value != nullptr && !value->is_string()) return wrong(where, key, "a text", *value);
  }
  const bool empty = std::ranges::all_of(json.members(), [](const auto& member) {
    const std::string_view key = member.first;
    return member.second.is_null() || key == "role" || key == "name" || key == "tool_call_id";
  });
  if (empty) return invalid(where + ".content is missing");
  // Templates do not read calls in this older form, so they would be lost.
  if (set_member(json, "function_call") != nullptr)
    return invalid(where + ".function_call is not read by templates; use tool_calls");
  ChatMessage message;
  message.role = role->text();
  message.whole = true;
  message.more = with_reasoning(json);
  const JsonValue* calls = set_member(message.more, "tool_calls");
  if (calls == nullptr) return message;
  LOOM_ASSIGN(JsonValue read, calls_of(*calls, where));
  JsonValue all = JsonValue::object();
  for (const auto& [key, value] : message.more.members())
    all.add(key, key == "tool_calls" ? std::move(read) : value);
  message.more = std::move(all);
  return message;
}

bool is_empty(const JsonValue& message, const std::string& content) {
  const JsonValue* own = set_member(message, "content");
  const bool text = own != nullptr ? !own->is_string() || !own->text().empty() : !content.empty();
  return !text && set_member(message, "reasoning_content") == nullptr;
}

// FNV-1a (Fowler, Noll, Vo).
uint64_t hash_of(std::string_view text, uint64_t state) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return state;
}

std::string call_id(std::string_view prompt, std::string_view text, size_t index) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  uint64_t hash =
      hash_of(std::to_string(index), hash_of(text, hash_of(prompt, 0xcbf29ce484222325)));
  std::string id;
  for (int i = 0; i < 9; ++i, hash /= kDigits.size()) id += kDigits[hash % kDigits.size()];
  return id;
}

}  // namespace

JsonValue arguments_json(const std::string& text) {
  if (text.empty()) return JsonValue::object();
  Result<JsonValue> json = parse_json(text, "arguments");
  return json.ok() && json->is_object() ? std::move(*json) : JsonValue::string(text);
}

JsonValue with_reasoning(const JsonValue& message) {
  const JsonValue* found = nullptr;
  for (const std::string_view key : kReasoning)
    if (found == nullptr) found = set_member(message, key);
  if (found == nullptr) return message;
  JsonValue out = JsonValue::object();
  const JsonValue* own = set_member(message, "thinking");
  out.add("thinking", own != nullptr ? *own : *found);
  for (const auto& [key, value] : message.members())
    if (key != "thinking") out.add(key, key == "reasoning_content" ? *found : value);
  if (message.find("reasoning_content") == nullptr) out.add("reasoning_content", *found);
  return out;
}

Result<std::vector<ChatMessage>> read_messages(std::string_view json) {
  LOOM_ASSIGN(const JsonValue list, parse_json(json, "messages"));
  if (!list.is_array())
    return invalid(cat("messages must be a list of messages; got ", list.describe()));
  if (list.elements().empty()) return invalid("messages needs at least one message");
  std::vector<ChatMessage> messages;
  for (const JsonValue& element : list.elements()) {
    LOOM_ASSIGN(ChatMessage message, message_of(element, cat("messages[", messages.size(), "]")));
    messages.push_back(std::move(message));
  }
  return messages;
}

Status check_calls(const std::vector<ChatMessage>& messages, std::string_view source) {
  if (source.find("tool_calls") != std::string_view::npos) return {};
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const JsonValue* calls = set_member(message.more, "tool_calls");
    if (calls == nullptr || calls->elements().empty()) continue;
    if (!is_empty(message.more, message.content)) continue;
    return make_error(Code::unsupported,
                      cat("messages[", i,
                          "].tool_calls: the chat template of this model reads no "
                          "calls, so the message would be empty; write the calls into content"));
  }
  return {};
}

std::string reply_json(const ParsedReply& reply, std::string_view prompt, std::string_view text) {
  JsonValue message = JsonValue::object();
  message.add("role", JsonValue::string("assistant"));
  const bool none = reply.text.empty() && !reply.calls.empty();
  message.add("content", none ? JsonValue() : JsonValue::string(reply.text));
  if (!reply.reasoning.empty())
    message.add("reasoning_content", JsonValue::string(reply.reasoning));
  if (reply.calls.empty()) return dump_json(message);
  JsonValue calls = JsonValue::array();
  for (const ToolCall& call : reply.calls) {
    JsonValue function = JsonValue::object();
    function.add("name", JsonValue::string(call.name));
    function.add("arguments", JsonValue::string(call.arguments));
    JsonValue one = JsonValue::object();
    const bool named = !call.id.empty();
    one.add("id",
            JsonValue::string(named ? call.id : call_id(prompt, text, calls.elements().size())));
    one.add("type", JsonValue::string("function"));
    one.add("function", std::move(function));
    if (!call.problem.empty()) one.add("problem", JsonValue::string(call.problem));
    calls.push(std::move(one));
  }
  message.add("tool_calls", std::move(calls));
  return dump_json(message);
}

}  // namespace loom::core
