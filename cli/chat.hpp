// A chat with a person or a pipe: lines in, replies out, commands between them. What a conversation
// is stands in loom/chat.hpp; this is its face.
#pragma once

#include <functional>
#include <string>

#include "loom/chat.hpp"

namespace loom::cli {

struct ChatFlags {
  ConversationOptions conversation;
  GenerateOptions generate;
  std::string load, save, replay;  // files; "": none
  bool hide_thinking = false, no_history = false, json = false, quiet = false;
  // Prints a reply as JSON; for --json.
  std::function<void(const Reply& reply)> print_json;
};

// One question where `question` is not null; else as many as come. Returns the exit code.
int talk(const Model& model, const ChatFlags& flags, const std::string* question);

}  // namespace loom::cli
