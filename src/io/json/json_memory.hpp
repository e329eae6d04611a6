// An upper bound of the memory of a parsed JSON text, computed from its punctuation before parsing.
// Braces and commas inside strings count too, because strings of model files hold JSON of their
// own.
#pragma once

#include <cstdint>
#include <string_view>

namespace loom::core {

struct JsonSize {
  uint64_t tree = 0;     // bytes of the parsed values and of building them
  uint64_t objects = 0;  // their number
  uint64_t nesting = 0;  // the sum of their depths; the outermost has depth 1
};
JsonSize measure_json(std::string_view text);

}  // namespace loom::core
