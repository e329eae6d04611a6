// The text of a command line as plain data. The help, the man pages and the completions are all
// written from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loom::cli {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; of a positional argument: its name
  std::string value;               // INT; empty for a flag
  std::string doc, range, standard, group;
  std::vector<std::string> excludes, needs;
  bool positional = false, required = false, repeats = false;
};

struct CommandText {
  std::string name;  // "llm"
  std::string path;  // "loom bench llm"
  std::string doc, group, examples, notes;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;

  // "loom train [OPTIONS] NETWORK DATA"
  std::string usage() const;
  // The headings of its options, in the order of the help; "" is the last.
  std::vector<std::string> option_groups() const;
  std::vector<std::string> command_groups() const;
};

// The sentence of an option: its help, range, default, and the options that it excludes or needs.
std::string full_doc(const OptionText& option);

// For --help. `width`: columns.
std::string help_text(const CommandText& command, int width);
// For `loom help --man`: troff, with the man macros. `version`: of the footer.
std::string man_page(const CommandText& command, std::string_view version);
// For `loom completion`. Empty for an unknown shell.
std::string completion_script(const CommandText& program, std::string_view shell);

}  // namespace loom::cli
