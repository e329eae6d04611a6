// Input lines of a chat: text, or a command. Pure functions over strings and options.
#pragma once

#include <string>
#include <string_view>

#include "loom/loom.hpp"

namespace loom::cli {

struct ChatLine {
  std::string command;  // "save" for "/save FILE"; empty if the line is text
  std::string rest;     // the rest of a command, or the text
};

// "/word rest" is a command; "//" at the beginning is text with one slash. In piped input, unknown
// commands are text too: "/usr/bin is a folder".
ChatLine parse_chat_line(std::string_view line, bool person);

// All commands, one per line.
std::string chat_help();
// Finds a command by name or prefix; otherwise an Error that lists them.
Result<std::string> chat_command(const std::string& word);

// Sets "temperature" to "0.8"; names may have '-' instead of '_'. Errors: invalid_argument.
Status set_chat_option(GenerateOptions& options, const std::string& name, const std::string& value);
// "temperature 0.8, top_k 40, ..."
std::string chat_options_text(const GenerateOptions& options);

}  // namespace loom::cli
