#include "options/list_text.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Error no_list(std::string_view text) {
  return invalid(cat("'", printable(text), "' is not a list; write it as [\"a\", \"b\"]"));
}

// Removes the quoted text at the front of `rest`. Escapes are \" and \\ alone: join_list() writes
// no others, and names of parameters have no control characters.
Result<std::string> take_quoted(std::string_view& rest, std::string_view whole) {
  std::string item;
  if (!rest.starts_with('"')) return no_list(whole);
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest = trimmed(rest.substr(i + 1));
      return item;
    }
    if (rest[i] == '\\' && (++i == rest.size() || (rest[i] != '"' && rest[i] != '\\')))
      return no_list(whole);
    item += rest[i];
  }
  return no_list(whole);
}

std::vector<std::string> split_numbers(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    items.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) items.emplace_back();  // "1," ends with an empty item, which is an error
  }
  return items;
}

}  // namespace

Result<std::vector<std::string>> split_list(std::string_view text, bool plain) {
  std::string_view rest = trimmed(text);
  const bool array = rest.starts_with('[');
  if (array && !rest.ends_with(']')) return no_list(text);
  if (array) rest = trimmed(rest.substr(1, rest.size() - 2));
  if (plain && !(array && rest.starts_with('"'))) return split_numbers(rest);
  std::vector<std::string> items;
  if (!array) {
    if (!text.empty()) items.emplace_back(text);
    return items;
  }
  while (!rest.empty()) {
    LOOM_ASSIGN(std::string item, take_quoted(rest, text));
    items.push_back(std::move(item));
    if (rest.empty()) return items;
    if (!rest.starts_with(',')) return no_list(text);
    rest = trimmed(rest.substr(1));
    if (rest.empty()) return no_list(text);
  }
  return items;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string join_list(const std::vector<std::string>& items, bool plain) {
  if (plain) return join(items, ",");
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(cat('"', escaped(item), '"'));
  return cat("[", join(quoted, ", "), "]");
}

}  // namespace loom::core
