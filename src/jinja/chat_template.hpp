// Chat templates: an own small subset of Jinja (for, if/elif/else, set, expressions, filters; no
// code, no attributes of the host), with limits on steps and output. What a template needs beyond
// the subset is an Error that names it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/civil_time.hpp"
#include "base/result.hpp"

namespace loom::core {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatInputs {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;
  CivilTime now;  // what strftime_now() of a template tells
};

class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(std::string_view source, const std::string& where);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();
  Result<std::string> render(const ChatInputs& inputs) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
