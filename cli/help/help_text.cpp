// The help of a command: examples, usage, arguments, options by group. Lines break at the width.
#include <fmt/ranges.h>

#include <algorithm>

#include "../shared/terminal.hpp"
#include "command_text.hpp"

namespace loom::cli {
namespace {

constexpr size_t kMinWidth = 40, kMaxWidth = 110;  // longer lines are hard to read
constexpr size_t kLeft = 26;                       // columns of names

void add_unique(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

// Words of `text` in lines that start at column `indent` and end before `width`. The cursor is at
// column `at`.
std::string wrapped(std::string_view text, size_t indent, size_t width, size_t at) {
  std::string out;
  bool first = at <= indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (!first && at + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    first = false;
    out += word;
    at += word.size();
  }
  return out + "\n";
}

// "  name      text", with the text in a column of its own.
std::string row(const std::string& name, const std::string& text, size_t width) {
  const std::string left = "  " + name;
  std::string out = "  " + styled_out(Style::bold, name);
  size_t at = left.size();
  if (text.empty()) return out + "\n";
  if (at + 2 > kLeft) {
    out += "\n" + std::string(kLeft, ' ');
  } else {
    out += std::string(kLeft - at, ' ');
  }
  at = kLeft;
  return out + wrapped(text, kLeft, width, at);
}

std::string heading(const std::string& title) {
  return "\n" + styled_out(Style::bold, title + ":") + "\n";
}

std::string option_name(const OptionText& option) {
  std::string name = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value.empty() && !option.positional) name += " " + option.value;
  return name;
}

}  // namespace

std::string CommandText::usage() const {
  std::string text = path + " [OPTIONS]";
  for (const OptionText& option : options) {
    if (!option.positional) continue;
    const std::string word = option.names.front() + (option.repeats ? "..." : "");
    text += option.required ? " " + word : " [" + word + "]";
  }
  return commands.empty() ? text : text + " COMMAND";
}

std::vector<std::string> CommandText::option_groups() const {
  std::vector<std::string> groups;
  for (const OptionText& option : options) {
    if (!option.positional && !option.group.empty()) add_unique(groups, option.group);
  }
  groups.emplace_back();
  return groups;
}

std::vector<std::string> CommandText::command_groups() const {
  std::vector<std::string> groups;
  for (const CommandText& command : commands) add_unique(groups, command.group);
  return groups;
}

std::string full_doc(const OptionText& option) {
  std::string text = option.doc;
  std::vector<std::string> facts;
  if (option.required && !option.positional) facts.emplace_back("required");
  if (!option.range.empty()) facts.push_back(option.range);
  if (!option.standard.empty()) facts.push_back("default " + option.standard);
  if (!option.needs.empty()) facts.push_back(fmt::format("with {}", fmt::join(option.needs, ", ")));
  if (!option.excludes.empty())
    facts.push_back(fmt::format("without {}", fmt::join(option.excludes, ", ")));
  if (facts.empty()) return text;
  return fmt::format("{}{}[{}]", text, text.empty() ? "" : " ", fmt::join(facts, "; "));
}

std::string help_text(const CommandText& command, int width) {
  const size_t columns = std::clamp(static_cast<size_t>(std::max(width, 0)), kMinWidth, kMaxWidth);
  std::string text;
  if (!command.examples.empty()) {
    text += styled_out(Style::bold, "Examples:") + "\n" + command.examples + "\n\n";
  }
  text += wrapped(command.doc, 0, columns, 0);
  text += wrapped("Usage: " + command.usage(), 7, columns, 0);
  const bool positional = std::any_of(command.options.begin(), command.options.end(),
                                      [](const OptionText& o) { return o.positional; });
  if (positional) text += heading("Arguments");
  for (const OptionText& option : command.options) {
    if (option.positional) text += row(option.names.front(), full_doc(option), columns);
  }
  for (const std::string& group : command.command_groups()) {
    text += heading(group.empty() ? "Commands" : group);
    for (const CommandText& other : command.commands) {
      if (other.group == group) text += row(other.name, other.doc, columns);
    }
  }
  for (const std::string& group : command.option_groups()) {
    text += heading(group.empty() ? "Options" : group);
    for (const OptionText& option : command.options) {
      if (!option.positional && option.group == group)
        text += row(option_name(option), full_doc(option), columns);
    }
  }
  return command.notes.empty() ? text : text + "\n" + command.notes + "\n";
}

}  // namespace loom::cli
