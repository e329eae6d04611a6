// ChatTemplate: the template language of this room with the variables that transformers gives to
// a chat template. Tools and documents are none; the time is given, so that a rendering depends on
// its inputs only.
#include "jinja/chat_template.hpp"

#include "base/text.hpp"
#include "jinja/eval.hpp"
#include "text/unicode.hpp"

namespace loom::core {

struct ChatTemplate::Impl {
  std::vector<jinja::Statement> body;
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
  impl->where = where;
  return ChatTemplate(std::move(impl));
}

Result<std::string> ChatTemplate::render(const ChatInputs& inputs) const {
  using jinja::Value;
  Value::List messages;
  uint64_t bytes = 0;
  const auto text_value = [&](const std::string& text) {
    bytes += text.size();
    return Value::string(text::is_valid_utf8(text) ? text : text::to_valid_utf8(text));
  };
  for (const ChatMessage& message : inputs.messages) {
    messages.push_back(Value::dict(
        {{"role", text_value(message.role)}, {"content", text_value(message.content)}}));
    bytes += 64;
  }
  jinja::Evaluator::Scope globals;
  globals.emplace_back("messages", Value::list(std::move(messages)));
  globals.emplace_back("add_generation_prompt", Value::boolean(inputs.add_generation_prompt));
  globals.emplace_back("tools", Value::none());
  globals.emplace_back("documents", Value::none());
  // A token that the tokenizer lacks is undefined, not empty.
  if (!inputs.bos_token.empty()) globals.emplace_back("bos_token", text_value(inputs.bos_token));
  if (!inputs.eos_token.empty()) globals.emplace_back("eos_token", text_value(inputs.eos_token));
  const uint64_t max_output = (uint64_t{16} << 20) + 4 * bytes;
  return jinja::Evaluator(jinja::Meter(impl_->where, bytes), max_output, std::move(globals),
                          inputs.now)
      .run(impl_->body);
}

}  // namespace loom::core
