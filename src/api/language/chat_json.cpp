// Writes a conversation as JSON and reads it.
#include <algorithm>

#include "api/language/chat_impl.hpp"
#include "base/text.hpp"
#include "io/json/json.hpp"

namespace loom {
namespace {

using core::JsonValue;

constexpr const char* kChatFormat = "loom-chat";
constexpr int64_t kChatVersion = 1;
constexpr int64_t kChatWithTools = 2;  // has turns of tools, unlike version 1
constexpr StopReason kStops[] = {StopReason::eos, StopReason::stop_string, StopReason::length,
                                 StopReason::context, StopReason::cancelled};

JsonValue settings_json(const GenerateOptions& options) {
  const SamplerOptions& s = options.sampler;
  JsonValue out = JsonValue::object();
  out.add("max_tokens", JsonValue::integer(options.max_tokens));
  out.add("temperature", JsonValue::real(static_cast<double>(s.temperature)));
  out.add("top_k", JsonValue::integer(s.top_k));
  out.add("top_p", JsonValue::real(static_cast<double>(s.top_p)));
  out.add("min_p", JsonValue::real(static_cast<double>(s.min_p)));
  out.add("repetition_penalty", JsonValue::real(static_cast<double>(s.repetition_penalty)));
  out.add("repetition_window", JsonValue::integer(s.repetition_window));
  // 64 bits as text: JSON readers keep 53 bits of a number.
  out.add("seed", JsonValue::string(core::cat(s.seed)));
  out.add("ignore_eos", JsonValue::boolean(options.ignore_eos));
  JsonValue stops = JsonValue::array();
  for (const std::string& stop : options.stop) stops.push(JsonValue::string(stop));
  out.add("stop", stops);
  return out;
}

JsonValue calls_json(const std::vector<ToolCall>& calls) {
  JsonValue out = JsonValue::array();
  for (const ToolCall& call : calls) {
    JsonValue one = JsonValue::object();
    one.add("id", JsonValue::string(call.id));
    one.add("name", JsonValue::string(call.name));
    one.add("arguments", JsonValue::string(call.arguments));
    out.push(std::move(one));
  }
  return out;
}

JsonValue turn_json(const ConversationTurn& turn) {
  JsonValue out = JsonValue::object();
  out.add("role", JsonValue::string(turn.role));
  out.add("content", JsonValue::string(turn.content));
  if (turn.role == "tool") {
    out.add("tool_call_id", JsonValue::string(turn.tool_call_id));
    out.add("name", JsonValue::string(turn.name));
  }
  if (turn.role != "assistant") return out;
  if (!turn.thinking.empty()) out.add("thinking", JsonValue::string(turn.thinking));
  if (!turn.tool_calls.empty()) out.add("tool_calls", calls_json(turn.tool_calls));
  out.add("stop_reason", JsonValue::string(std::string(stop_reason_name(turn.stop))));
  out.add("tokens", JsonValue::integer(turn.tokens));
  out.add("settings", settings_json(turn.options));
  return out;
}

// Members by name, with errors that name them.
class ChatFields {
 public:
  ChatFields(const JsonValue& object, std::string where)
      : object_(object), where_(std::move(where)) {}
  Result<std::string> text(std::string_view name, bool required = true) const {
    const JsonValue* member = object_.find(name);
    if (member == nullptr && !required) return std::string();
    return member == nullptr ? missing(name) : member->as_string(core::cat(where_, ": ", name));
  }
  Result<int64_t> integer(std::string_view name) const {
    const JsonValue* member = object_.find(name);
    if (member == nullptr) return missing(name);
    return member->as_int(core::cat(where_, ": ", name));
  }
  Result<float> real(std::string_view name) const {
    const JsonValue* member = object_.find(name);
    if (member == nullptr) return missing(name);
    LOOM_ASSIGN(const double value, member->as_double(core::cat(where_, ": ", name)));
    return static_cast<float>(value);
  }
  Result<bool> truth(std::string_view name) const {
    const JsonValue* member = object_.find(name);
    if (member == nullptr) return missing(name);
    return member->as_bool(core::cat(where_, ": ", name));
  }
  Error missing(std::string_view name) const {
    return core::make_error(Code::bad_file, core::cat("'", name, "' is missing"), where_);
  }
  Error wrong(std::string_view name, std::string_view why) const {
    return core::make_error(Code::bad_file, core::cat("'", name, "' ", why), where_);
  }

 private:
  const JsonValue& object_;
  std::string where_;
};

Result<GenerateOptions> read_settings(const JsonValue& json, const std::string& where) {
  const ChatFields fields(json, where);
  GenerateOptions options;
  SamplerOptions& s = options.sampler;
  LOOM_ASSIGN(options.max_tokens, fields.integer("max_tokens"));
  LOOM_ASSIGN(s.temperature, fields.real("temperature"));
  LOOM_ASSIGN(s.top_k, fields.integer("top_k"));
  LOOM_ASSIGN(s.top_p, fields.real("top_p"));
  LOOM_ASSIGN(s.min_p, fields.real("min_p"));
  LOOM_ASSIGN(s.repetition_penalty, fields.real("repetition_penalty"));
  LOOM_ASSIGN(s.repetition_window, fields.integer("repetition_window"));
  LOOM_ASSIGN(const std::string seed, fields.text("seed"));
  for (const char c : seed) {
    const auto digit = static_cast<uint64_t>(c - '0');
    if (c < '0' || c > '9' || s.seed > (UINT64_MAX - digit) / 10)
      return fields.wrong("seed", "is not a number below 2^64");
    s.seed = s.seed * 10 + digit;
  }
  LOOM_ASSIGN(options.ignore_eos, fields.truth("ignore_eos"));
  const JsonValue* stops = json.find("stop");
  if (stops == nullptr) return fields.missing("stop");
  for (const JsonValue& stop : stops->elements()) {
    LOOM_ASSIGN(std::string text, stop.as_string(where + ": stop"));
    options.stop.push_back(std::move(text));
  }
  return options;
}

Result<std::vector<ToolCall>> read_calls(const JsonValue* list, const std::string& where) {
  std::vector<ToolCall> calls;
  if (list == nullptr) return calls;
  for (const JsonValue& json : list->elements()) {
    const ChatFields fields(json, where);
    ToolCall call;
    LOOM_ASSIGN(call.id, fields.text("id"));
    LOOM_ASSIGN(call.name, fields.text("name"));
    LOOM_ASSIGN(call.arguments, fields.text("arguments"));
    calls.push_back(std::move(call));
  }
  return calls;
}

// Checks the order of turns: questions and replies alternate; a reply with calls is followed by one
// result for each and another reply.
class TurnOrder {
 public:
  Status take(const ConversationTurn& turn, const ChatFields& fields) {
    const bool may_ask = replied_, may_give = given_ < calls_.size();
    if (turn.role == "tool") {
      if (!may_give) return fields.wrong("role", "is tool, and no call waits for a result");
      if (turn.tool_call_id != calls_[given_].id)
        return fields.wrong("tool_call_id", "is not that of the call");
      ++given_;
      replied_ = false;
      return {};
    }
    if (turn.role == "user") {
      if (!may_ask) return fields.wrong("role", "is not assistant");
      calls_.clear();
      replied_ = false;
    } else {
      if (turn.role != "assistant" || replied_)
        return fields.wrong("role", replied_ ? "is not user" : "is not assistant");
      if (may_give) return fields.wrong("role", "is not tool, and a call has no result");
      calls_ = turn.tool_calls;
      replied_ = true;
    }
    given_ = 0;
    return {};
  }
  bool is_complete() const { return replied_; }

 private:
  std::vector<ToolCall> calls_;  // of the last reply
  size_t given_ = 0;             // results so far
  bool replied_ = true;          // the last turn is a reply, or there is none
};

Result<ConversationTurn> read_turn(const JsonValue& json, const std::string& where) {
  const ChatFields fields(json, where);
  ConversationTurn turn;
  LOOM_ASSIGN(turn.role, fields.text("role"));
  LOOM_ASSIGN(turn.content, fields.text("content"));
  if (turn.role == "tool") {
    LOOM_ASSIGN(turn.tool_call_id, fields.text("tool_call_id"));
    LOOM_ASSIGN(turn.name, fields.text("name"));
  }
  if (turn.role != "assistant") return turn;
  LOOM_ASSIGN(turn.thinking, fields.text("thinking", false));
  LOOM_ASSIGN(turn.tool_calls, read_calls(json.find("tool_calls"), where + ": tool_calls"));
  LOOM_ASSIGN(turn.tokens, fields.integer("tokens"));
  LOOM_ASSIGN(const std::string stop, fields.text("stop_reason"));
  bool known = false;
  for (const StopReason reason : kStops) {
    if (stop_reason_name(reason) != stop) continue;
    turn.stop = reason;
    known = true;
  }
  if (!known) return fields.wrong("stop_reason", "is not a stop reason");
  const JsonValue* settings = json.find("settings");
  if (settings == nullptr) return fields.missing("settings");
  LOOM_ASSIGN(turn.options, read_settings(*settings, where + ": settings"));
  return turn;
}

// Other template inputs, each as JSON in a text.
constexpr std::pair<const char*, std::string ChatOptions::*> kTemplating[] = {
    {"tools", &ChatOptions::tools},
    {"documents", &ChatOptions::documents},
    {"variables", &ChatOptions::variables}};

}  // namespace

std::string Chat::to_json() const {
  JsonValue out = JsonValue::object();
  out.add("format", JsonValue::string(kChatFormat));
  const auto of_tool = [](const ConversationTurn& turn) { return turn.role == "tool"; };
  const bool tools = std::ranges::any_of(impl_->turns, of_tool);
  out.add("version", JsonValue::integer(tools ? kChatWithTools : kChatVersion));
  out.add("model", JsonValue::string(impl_->model.info().source));
  out.add("system", JsonValue::string(impl_->system));
  out.add("date", JsonValue::string(impl_->templating.date));
  for (const auto& [name, member] : kTemplating) {
    const std::string& json = impl_->templating.*member;
    if (!json.empty()) out.add(name, JsonValue::string(json));
  }
  out.add("context", JsonValue::integer(context()));
  out.add("reserve", JsonValue::integer(impl_->reserve));
  out.add("on_full", JsonValue::string(std::string(when_full_name(impl_->on_full))));
  out.add("first_turn", JsonValue::integer(first_turn()));
  JsonValue turns = JsonValue::array();
  for (const ConversationTurn& turn : impl_->turns) turns.push(turn_json(turn));
  out.add("turns", turns);
  return core::dump_json(out, 2) + "\n";
}

Status Chat::restore(std::string_view json, const std::string& where) {
  LOOM_ASSIGN(const JsonValue root, core::parse_json(json, where));
  const ChatFields fields(root, where);
  LOOM_ASSIGN(const std::string format, fields.text("format"));
  LOOM_ASSIGN(const int64_t version, fields.integer("version"));
  if (format != kChatFormat || (version != kChatVersion && version != kChatWithTools))
    return core::make_error(Code::bad_file, "is not a conversation that this version reads", where);
  LOOM_ASSIGN(std::string system, fields.text("system"));
  ChatOptions templating = impl_->templating;
  LOOM_ASSIGN(templating.date, fields.text("date"));
  for (const auto& [name, member] : kTemplating) {
    LOOM_ASSIGN(std::string kept, fields.text(name, false));
    if (kept.empty()) continue;
    LOOM_TRY(core::parse_json(kept, core::cat(where, ": ", name)));
    templating.*member = std::move(kept);
  }
  LOOM_ASSIGN(const std::string full, fields.text("on_full"));
  LOOM_ASSIGN(const WhenFull on_full, parse_when_full(full));
  LOOM_ASSIGN(const int64_t first, fields.integer("first_turn"));
  const JsonValue* list = root.find("turns");
  if (list == nullptr || !list->is_array()) return fields.missing("turns");
  std::vector<ConversationTurn> turns;
  TurnOrder order;
  for (const JsonValue& turn : list->elements()) {
    const std::string location = core::cat(where, ": turn ", turns.size() + 1);
    LOOM_ASSIGN(ConversationTurn read, read_turn(turn, location));
    LOOM_TRY(order.take(read, ChatFields(turn, location)));
    turns.push_back(std::move(read));
  }
  const auto of_tool = [](const ConversationTurn& turn) { return turn.role == "tool"; };
  if ((version == kChatWithTools) != std::ranges::any_of(turns, of_tool))
    return fields.wrong("version", "is that of other turns");
  if (!order.is_complete()) return fields.wrong("turns", "end with a question");
  const auto count = static_cast<int64_t>(turns.size());
  if (first < 0 || first > count ||
      (first < count && turns[static_cast<size_t>(first)].role != "user"))
    return fields.wrong("first_turn", "is not a question of the turns");
  impl_->system = std::move(system);
  impl_->templating = std::move(templating);
  impl_->on_full = on_full;
  impl_->turns = std::move(turns);
  impl_->first = static_cast<size_t>(first);
  return {};
}

}  // namespace loom
