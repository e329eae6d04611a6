// "Did you mean ...?" for the words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loom::cli {

// "; did you mean 'run'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace loom::cli
