#include "options/words.hpp"

#include "base/names.hpp"
#include "base/text.hpp"

namespace loom::core {

Result<size_t> find_word(std::string_view what, std::span<const Word> words,
                         std::string_view text) {
  const std::string lower = to_lower_ascii(text);
  std::vector<std::string> known;
  for (size_t i = 0; i < words.size(); ++i) {
    if (lower == words[i].text || (!lower.empty() && lower == words[i].also)) return i;
    known.emplace_back(words[i].text);
  }
  return unknown_word(what, text, known);
}

}  // namespace loom::core
