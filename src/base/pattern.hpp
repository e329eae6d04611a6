// Patterns over names, as a user writes them.
#pragma once

#include <string_view>

namespace loom::core {

// Whether the whole text matches: * stands for any characters, also none, and ? for one.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace loom::core
