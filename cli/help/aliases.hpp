// Names that other programs use: those that work here too, and hints for those that do not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loom::cli {

// "ls" is "list"; other words are unchanged.
std::string command_alias(const std::string& word);

// Replaces options that a command does not know, from words[first] on. `known`: its options with
// dashes, and its arguments. "--max_tokens" becomes "--max-tokens", "--lr" becomes "--rate", and
// the value of "-m" becomes the argument MODEL.
void replace_options(std::vector<std::string>& words, size_t first,
                     const std::vector<std::string>& known);

// The end of the error about an unknown word: "; it is called train". Empty without a hint.
std::string command_hint(std::string_view word);
// About an argument that is too many.
std::string argument_hint(std::string_view command);
std::string option_hint(std::string_view command, std::string_view name);

}  // namespace loom::cli
