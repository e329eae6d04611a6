// Name patterns in user input.
#pragma once

#include <string_view>

namespace loom::core {

// Whether the whole text matches: * matches any number of characters, including none, and ? one.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace loom::core
