// ChatTemplate: the template language of this room with the variables that transformers gives to a
// chat template. The time is an argument, so a rendering depends only on its inputs.
#include "jinja/chat_template.hpp"

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "jinja/eval.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {

struct ChatTemplate::Impl {
  std::vector<jinja::Statement> body;
  std::vector<std::string> hidden;
  std::string where;
};

namespace {
constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& where) {
  if (source.size() > kMaxTemplateBytes) {
    return bad_file(cat("a template of more than ", kMaxTemplateBytes, " bytes"), where);
  }
  auto impl = std::make_unique<Impl>();
  LOOM_ASSIGN(impl->body, jinja::parse_template(source, where));
  impl->hidden = jinja::hidden_names(impl->body);
  impl->where = where;
  return ChatTemplate(std::move(impl));
}

namespace {

// Bytes of a value that a rendering may read, for its limits.
uint64_t size_of(const JsonValue& value) {
  uint64_t bytes = 32 + value.text().size();
  for (const JsonValue& element : value.elements()) bytes += size_of(element);
  for (const auto& [key, member] : value.members()) bytes += key.size() + size_of(member);
  return bytes;
}

jinja::Value text_value(const std::string& text) {
  return jinja::Value::string(text::is_valid_utf8(text) ? text : text::to_valid_utf8(text));
}

// As in transformers: null members are left out, because templates print "None" for them or fail.
jinja::Value message_value(const ChatMessage& message) {
  using jinja::Value;
  Value::Dict members;
  const JsonValue& more = message.more;
  if (!message.whole) {
    members.emplace_back("role", text_value(message.role));
    if (more.find("content") == nullptr)
      members.emplace_back("content", text_value(message.content));
  }
  for (const auto& [key, value] : more.members()) {
    if (value.is_null() || (!message.whole && key == "role")) continue;
    members.emplace_back(key, Value::from_json(value));
  }
  return Value::dict(std::move(members));
}

// Values deeper or larger than a rendering could make by itself would exceed its limits.
bool too_large(const jinja::Value& value) {
  return value.depth() > 64 || value.weight() > 1'000'000;
}

constexpr std::string_view kContinueMark = "CONTINUE_FINAL_MESSAGE_TAG ";

JsonValue with_member(const JsonValue& object, std::string_view key, JsonValue value) {
  JsonValue out = JsonValue::object();
  for (const auto& [name, member] : object.members())
    out.add(name, name == key ? std::move(value) : member);
  return out;
}

// Adds the mark to the text of a message, or to the last text of its parts. Returns the text
// without it; unset if there is none.
std::optional<std::string> mark_end(ChatMessage& message) {
  const JsonValue* content = message.more.find("content");
  const bool plain = content == nullptr && !message.whole;
  if (plain || (content != nullptr && content->is_string())) {
    const std::string text = plain ? message.content : content->text();
    const std::string marked = text + std::string(kContinueMark);
    if (plain) message.content = marked;
    if (!plain) message.more = with_member(message.more, "content", JsonValue::string(marked));
    return text;
  }
  if (content == nullptr) return std::nullopt;
  for (size_t i = content->elements().size(); i-- > 0;) {
    const JsonValue& part = content->elements()[i];
    const JsonValue* text = part.find("text");
    if (text == nullptr || !text->is_string()) continue;
    const std::string found = text->text();
    std::vector<JsonValue> parts = content->elements();
    JsonValue marked = JsonValue::string(found + std::string(kContinueMark));
    parts[i] = with_member(part, "text", std::move(marked));
    message.more = with_member(message.more, "content", JsonValue::array(std::move(parts)));
    return found;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> ChatTemplate::render(const ChatInputs& inputs) const {
  return inputs.continue_final_message ? render_start(inputs) : render_all(inputs);
}

// As transformers does it: a mark after the text shows where to cut.
Result<std::string> ChatTemplate::render_start(ChatInputs inputs) const {
  std::optional<std::string> last;
  if (!inputs.messages.empty()) last = mark_end(inputs.messages.back());
  if (!last.has_value())
    return invalid("continue_final_message needs a last message with a text to continue");
  inputs.add_generation_prompt = false;
  LOOM_ASSIGN(std::string text, render_all(inputs));
  const std::string_view mark = kContinueMark.substr(0, kContinueMark.size() - 1);
  const size_t end = text.rfind(mark);
  if (end == std::string::npos || text.find(jinja::python_strip(*last)) == std::string::npos) {
    return invalid(
        "continue_final_message: the chat template changes the text of the last message; "
        "leave it out, or give the beginning of the reply as text after the prompt");
  }
  const bool spaced = std::string_view(text).substr(end).starts_with(kContinueMark);
  text.resize(end);
  return spaced ? text : jinja::python_rstrip(text);
}

Result<std::string> ChatTemplate::render_all(const ChatInputs& inputs) const {
  using jinja::Value;
  Value::List messages;
  uint64_t bytes = size_of(inputs.tools) + size_of(inputs.documents) + size_of(inputs.variables);
  for (const ChatMessage& message : inputs.messages) {
    messages.push_back(message_value(message));
    bytes += 64 + message.role.size() + message.content.size() + size_of(message.more);
  }
  jinja::TemplateEvaluator::Variables globals;
  globals.emplace_back("messages", Value::list(std::move(messages)));
  globals.emplace_back("add_generation_prompt", Value::boolean(inputs.add_generation_prompt));
  globals.emplace_back("tools", Value::from_json(inputs.tools));
  globals.emplace_back("documents", Value::from_json(inputs.documents));
  // A token that the tokenizer lacks is undefined, not empty.
  if (!inputs.bos_token.empty()) globals.emplace_back("bos_token", text_value(inputs.bos_token));
  if (!inputs.eos_token.empty()) globals.emplace_back("eos_token", text_value(inputs.eos_token));
  for (const auto& [name, value] : inputs.variables.members()) {
    for (const auto& global : globals) {
      if (global.first == name && name != "bos_token" && name != "eos_token")
        return invalid(cat("the template variable '", printable(name),
                           "' is set by the conversation; choose another name"));
    }
    globals.emplace(globals.begin(), name, Value::from_json(value));
  }
  for (const auto& global : globals) {
    if (too_large(global.second))
      return invalid(cat("'", printable(global.first), "' has too many parts for a template"));
  }
  for (const std::string& name : impl_->hidden) {
    globals.emplace(globals.begin(), name, Value::undefined(name));
  }
  const uint64_t max_output = (uint64_t{16} << 20) + 4 * bytes;
  return jinja::TemplateEvaluator(jinja::Meter(impl_->where, bytes), max_output, std::move(globals),
                                  inputs.now)
      .run(impl_->body);
}

}  // namespace loom::core
