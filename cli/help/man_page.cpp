// Man pages: troff with the macros of man(7).
#include <fmt/ranges.h>

#include "command_text.hpp"

namespace loom::cli {
namespace {

// Text in which troff finds no command.
std::string troff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool starts = i == 0 || text[i - 1] == '\n';
    if (starts && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

// "loom-bench-llm", the name of its page.
std::string page_name(const CommandText& command) {
  std::string name = command.path;
  for (char& c : name)
    if (c == ' ') c = '-';
  return name;
}

std::string section(std::string_view title) {
  std::string name(title);
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return fmt::format(".SH \"{}\"\n", troff(name));
}

std::string item(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", troff(name), troff(text));
}

std::string option_items(const CommandText& command, const std::string& group, bool positional) {
  std::string text;
  for (const OptionText& option : command.options) {
    if (option.positional != positional || (!positional && option.group != group)) continue;
    std::string name = fmt::format("{}", fmt::join(option.names, ", "));
    if (!positional && !option.value.empty()) name += " " + option.value;
    text += item(name, full_doc(option));
  }
  return text;
}

}  // namespace

std::string man_page(const CommandText& command, std::string_view version) {
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"{}\" \"User Commands\"\n",
                                 troff(page_name(command)), troff(version));
  text +=
      section("Name") + fmt::format("{} \\- {}\n", troff(page_name(command)), troff(command.doc));
  text += section("Synopsis") + troff(command.usage()) + "\n";
  if (!command.examples.empty())
    text += section("Examples") + ".nf\n" + troff(command.examples) + "\n.fi\n";
  const std::string arguments = option_items(command, {}, true);
  if (!arguments.empty()) text += section("Arguments") + arguments;
  for (const std::string& group : command.command_groups()) {
    text += section(group.empty() ? "Commands" : group);
    for (const CommandText& other : command.commands) {
      if (other.group == group) text += item(other.name, other.doc);
    }
  }
  for (const std::string& group : command.option_groups())
    text += section(group.empty() ? "Options" : group) + option_items(command, group, false);
  if (!command.notes.empty()) text += section("Notes") + troff(command.notes) + "\n";
  return text;
}

}  // namespace loom::cli
