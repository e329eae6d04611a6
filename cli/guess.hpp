// "Did you mean ...?": the word of a list that a mistyped word is closest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loom::cli {

// The closest of `known`: at most one edit in three letters (a letter more, less, another, or two
// swapped). "": none is that close.
std::string closest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 'run'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace loom::cli
