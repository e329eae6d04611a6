// A chat with a person or a pipe: lines in, replies out, commands between them. This is the user
// interface of loom/chat.hpp.
#pragma once

#include <functional>
#include <string>

#include "loom/chat.hpp"

namespace loom::cli {

struct ChatFlags {
  ConversationOptions conversation;
  GenerateOptions generate;
  // Turns of user and assistant, which alternate, before the first question.
  std::vector<ChatTurn> messages;
  std::string load, save, replay;  // files; may be empty
  bool hide_thinking = false, no_history = false, json = false, quiet = false;
  // Prints a reply as JSON; for --json.
  std::function<void(const Reply& reply)> print_json;
};

// Asks one question if `question` is not null; else every line. Returns the exit code.
int talk(const Model& model, const ChatFlags& flags, const std::string* question);

}  // namespace loom::cli
