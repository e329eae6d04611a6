// Conversations with tools, the same for all dialects: what a request says about them, the prompt
// that follows, and the reply told apart again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jinja/chat_template.hpp"
#include "serve/service.hpp"

namespace loom::core {

// The fields of a request that concern the template and tools; null: absent.
struct ToolFields {
  const JsonValue* tools = nullptr;      // as OpenAI has them
  const JsonValue* choice = nullptr;     // as OpenAI or Anthropic have it
  const JsonValue* variables = nullptr;  // of the template: chat_template_kwargs
  std::string schema{};                  // JSON, of a reply that calls nothing; "": any text
  // How hard to think, take_effort(); "": unsaid. Refused where the template knows no effort,
  // unless it is a wish.
  std::string effort{};
  bool effort_is_wish = false;
  bool parallel = true;              // false: only the first call of a reply counts
  std::optional<bool> begins_reply;  // the prompt ends where a reply begins; unsaid: yes
  // The last turn is the beginning of the reply; unsaid: where an assistant wrote it, and the
  // server goes on with such turns (ServiceOptions::prefill).
  std::optional<bool> continues;
};

// A conversation as the model reads it, and who reads its replies.
struct ChatPrompt {
  std::string text;
  std::vector<TokenId> ids;
  std::string tools;         // JSON, as ReplyParser takes it
  bool has_replies = false;  // replies may hold calls or reasoning, so they have to be told apart
  bool parallel = true;
  std::string grammar;  // what replies are held to; "": nothing. It holds ToolFields::schema

  // Errors: invalid_argument (the options hold texts to something else).
  Status apply(GenerateOptions& options) const;
};

// What joins the text parts of a message into the one text that a chat template gets: what the
// template puts between parts if it prints lists of parts itself; else a new line, as in llama.cpp
// and vLLM.
std::string_view part_separator(const ChatTemplate& chat_template);
// Whether the template trims each part, as Gemma 4's does.
bool trims_parts(const ChatTemplate& chat_template);
// content_text() of a list, each part without white space at its ends.
Result<std::string> trimmed_parts(const JsonValue& content, std::string_view where,
                                  std::string_view separator);

// `reply`: as Service::tokenize() has it. Errors: those of the fields, of the template and of
// tokenizing, by name.
Result<ChatPrompt> chat_prompt(const Service& service, const std::vector<ChatTurn>& turns,
                               const ToolFields& fields, const HttpReply& reply);

// "none", "minimal", "low", "medium", "high", "xhigh" or "max".
Status take_effort(const JsonValue& value, std::string_view name, std::string& to);

// The rest of a turn: tool_calls, tool_call_id, name and reasoning_content of a message.
Status take_turn_fields(const JsonValue& message, const std::string& where, ChatTurn& turn);

// One reply on its way, with ids for its calls.
class ChatReply {
 public:
  // `prefix`: of ids, "call_".
  static Result<std::vector<ChatReply>> make(const Service& service, const ChatPrompt& prompt,
                                             size_t count, std::string_view prefix);
  // Pieces of more text; of calls beyond the first where there is to be one alone, none.
  std::vector<ReplyPiece> feed(std::string_view text);
  std::vector<ReplyPiece> finish();
  // After finish(): with ids, and without calls that do not count.
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
