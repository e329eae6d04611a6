// Texts for the values of an enum whose values are 0, 1, ...: what files and flags say.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

struct Word {
  std::string_view text;
  std::string_view also;  // another text that is read; "" if there is none
};

// The position of the word, whatever its case. Errors: invalid_argument, "unknown loss 'x'; choose
// from ...".
Result<size_t> find_word(std::string_view what, std::span<const Word> words, std::string_view text);

// The text of a value; "unknown" for other numbers.
template <class E>
std::string_view word_of(std::span<const Word> words, E value) {
  const auto index = static_cast<size_t>(value);
  return index < words.size() ? words[index].text : std::string_view("unknown");
}

template <class E>
Result<E> value_of(std::string_view what, std::span<const Word> words, std::string_view text) {
  LOOM_ASSIGN(const size_t index, find_word(what, words, text));
  return static_cast<E>(index);
}

}  // namespace loom::core
