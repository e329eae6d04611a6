#include "guess.hpp"

#include "loom/text.hpp"

namespace loom::cli {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string guess = closest(word, known);
  return guess.empty() ? std::string() : "; did you mean '" + guess + "'?";
}

}  // namespace loom::cli
