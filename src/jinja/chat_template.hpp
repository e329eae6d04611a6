// Chat templates: our own Jinja, configured like jinja2 in transformers, with limits on steps,
// memory, depth and output. It reads no other template and cannot access the host. An unsupported
// feature is an Error that names it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/civil_time.hpp"
#include "base/result.hpp"
#include "io/json/json.hpp"

namespace loom::core {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // An object with the other members of the message (tool_calls, tool_call_id, name,
  // reasoning_content), and "content" if it is not text.
  JsonValue more;
  bool whole = false;  // `more` has all members in their order; `role` and `content` do not count
};

struct ChatInputs {
  std::vector<ChatMessage> messages;
  JsonValue tools;      // an array of functions in OpenAI's form, or null
  JsonValue documents;  // an array, or null
  JsonValue variables;  // an object with further variables, such as enable_thinking; or null
  bool add_generation_prompt = true;
  // The rendering ends where the text of the last message ends, as in transformers. Errors:
  // invalid_argument (the last message has no text, or the template changes it).
  bool continue_final_message = false;
  std::string bos_token, eos_token;
  CivilTime now;  // the result of strftime_now() in a template
};

class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(std::string_view source, const std::string& where);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();
  Result<std::string> render(const ChatInputs& inputs) const;

 private:
  Result<std::string> render_all(const ChatInputs& inputs) const;
  Result<std::string> render_start(ChatInputs inputs) const;
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
