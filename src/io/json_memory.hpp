// How much memory a JSON text may take once it is parsed, counted before that, from its
// punctuation. Upper bounds; braces and commas inside strings count too, because strings of model
// files hold JSON of their own.
#pragma once

#include <cstdint>
#include <string_view>

namespace loom::core {

struct JsonSize {
  uint64_t tree = 0;     // bytes of the parsed values, with what building them takes
  uint64_t objects = 0;  // how many there are
  uint64_t nesting = 0;  // the sum of their depths; the outermost has depth 1
};
JsonSize measure_json(std::string_view text);

}  // namespace loom::core
