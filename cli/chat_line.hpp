// What a person types in a chat: text, or a command. Pure functions over strings and options.
#pragma once

#include <string>
#include <string_view>

#include "loom/loom.hpp"

namespace loom::cli {

struct ChatLine {
  std::string command;  // "save" of "/save FILE"; "": the line is text
  std::string rest;     // what follows the command, or the text
};

// "/word rest" is a command; "//" at the beginning is text with one slash. Where no person types,
// words that are no command are text too: "/usr/bin is a folder".
ChatLine parse_chat_line(std::string_view line, bool person);

// All commands with a line for each.
std::string chat_help();
// The command of that name or of that beginning; else an Error with what there is.
Result<std::string> chat_command(const std::string& word);

// "temperature" "0.8": any of them also with '-' in place of '_'. Errors: invalid_argument.
Status set_chat_option(GenerateOptions& options, const std::string& name, const std::string& value);
// "temperature 0.8, top_k 40, ..."
std::string chat_options_text(const GenerateOptions& options);

}  // namespace loom::cli
