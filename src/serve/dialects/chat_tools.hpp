// Conversations with tools, for all dialects: the request fields, the resulting prompt, and the
// parsing of replies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/service.hpp"

namespace loom::core {

// The fields of a request that concern the template and tools; null if absent.
struct ToolFields {
  const JsonValue* tools = nullptr;      // in OpenAI's form
  const JsonValue* choice = nullptr;     // in OpenAI's or Anthropic's form
  const JsonValue* variables = nullptr;  // of the template: chat_template_kwargs
  std::string schema{};                  // schema of a reply without calls; empty: any
  // The thinking effort, see take_effort(); empty means unset. If the template does not support
  // one, it is refused unless it is only a hint.
  std::string effort{};
  bool effort_is_wish = false;
  bool parallel = true;              // false: only the first call of a reply counts
  std::optional<bool> begins_reply;  // the prompt ends where a reply begins; unset means true
  // Whether the last turn is the start of the reply. Unset means true if an assistant wrote it and
  // the server continues such turns (ServiceOptions::prefill).
  std::optional<bool> continues;
};

// A conversation as a prompt, and the parsing of its replies.
struct ChatPrompt {
  std::string text;
  std::vector<TokenId> ids;
  std::string tools;         // JSON, as ReplyParser takes it
  bool has_replies = false;  // replies may have calls or reasoning and must be parsed
  bool parallel = true;
  std::string grammar;  // constrains replies; empty means none. Includes ToolFields::schema

  // Errors: invalid_argument (the options have another constraint).
  Status apply(GenerateOptions& options) const;
};

// The separator between the text parts of a message, which a chat template gets as one text. It is
// the template's own separator if the template prints lists of parts; else a new line, as in
// llama.cpp and vLLM.
std::string_view part_separator(const Model& model);
// Whether the template trims each part, as Gemma 4's does.
bool trims_parts(const Model& model);
// content_text() of a list, with each part trimmed.
Result<std::string> trimmed_parts(const JsonValue& content, std::string_view where,
                                  std::string_view separator);

// `reply`: as in Service::tokenize(). Errors: those of the fields (by name), of the template and of
// tokenizing.
Result<ChatPrompt> chat_prompt(const Service& service, const std::vector<ChatTurn>& turns,
                               const ToolFields& fields, const HttpReply& reply);

// "none", "minimal", "low", "medium", "high", "xhigh" or "max".
Status take_effort(const JsonValue& value, std::string_view name, std::string& to);

// The rest of a turn: tool_calls, tool_call_id, name and reasoning_content of a message.
Status take_turn_fields(const JsonValue& message, const std::string& where, ChatTurn& turn);

// One reply in progress, with ids for its calls.
class ChatReply {
 public:
  // `prefix`: prefix of ids, "call_".
  static Result<std::vector<ChatReply>> make(const Service& service, const ChatPrompt& prompt,
                                             size_t count, std::string_view prefix);
  // Parses more text. Calls after the first are dropped if only one is allowed.
  std::vector<ReplyPiece> feed(std::string_view text);
  std::vector<ReplyPiece> finish();
  // Call it after finish(): the reply with ids, without dropped calls.
  ParsedReply reply() const;
  const std::string& id(int32_t call);

 private:
  ChatReply(ReplyParser parser, bool parallel, std::string_view prefix)
      : parser_(std::move(parser)), parallel_(parallel), prefix_(prefix) {}
  std::vector<ReplyPiece> counted(std::vector<ReplyPiece> pieces);

  ReplyParser parser_;
  bool parallel_;
  std::string prefix_;
  std::vector<std::string> ids_;
};

}  // namespace loom::core
