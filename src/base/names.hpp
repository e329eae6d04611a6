// Words for the values of an enum: the value of a word, and the error for an unknown word.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

// The closest of `known`, ignoring case: at most one edit in three letters (an added, removed or
// changed letter, or two swapped; optimal string alignment). "" if none is that close.
std::string closest(std::string_view word, const std::vector<std::string>& known);

// "unknown device 'gpuu'; choose from cpu, gpu; did you mean 'gpu'?"
Error unknown_word(std::string_view what, std::string_view word,
                   const std::vector<std::string>& known);

// The position of `word` in `names`, ignoring case. Errors: unknown_word().
Result<size_t> position_of(std::string_view what, std::span<const std::string_view> names,
                           std::string_view word);

// The same as the value of an enum whose values are the positions.
template <class E>
Result<E> value_named(std::string_view what, std::span<const std::string_view> names,
                      std::string_view word) {
  LOOM_ASSIGN(const size_t position, position_of(what, names, word));
  return static_cast<E>(position);
}

}  // namespace loom::core
