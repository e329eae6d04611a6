#include "io/json/json_memory.hpp"

#include <algorithm>

#include "io/json/json.hpp"

namespace loom::core {

JsonSize measure_json(std::string_view text) {
  JsonSize size;
  uint64_t values = 1, members = 0;
  int64_t depth = 0;
  const char* begin = text.data();  // of a run without punctuation
  ptrdiff_t longest = 0;
  for (const char& at : text) {
    const char c = at;
    // Most bytes of a text are letters and digits.
    if (c != ',' && c != ':' && c != '{' && c != '}' && c != '[') continue;
    longest = std::max(longest, &at - begin);
    begin = &at;
    values += c == ',' || c == '[' ? 1 : 0;
    members += c == ':' ? 1 : 0;
    if (c == '{') {
      depth = std::min<int64_t>(depth + 1, JsonLimits().max_depth);
      ++size.objects;
      size.nesting += static_cast<uint64_t>(depth);
    } else if (c == '}') {
      depth = std::max<int64_t>(depth - 1, 0);
    }
  }
  longest = std::max(longest, text.data() + text.size() - begin);
  // The lexer copies the text between two tokens into a buffer that doubles. A value is once on the
  // stack of the parser and once in its array or object.
  size.tree = text.size() + 2 * sizeof(JsonValue) * values +
              2 * sizeof(JsonValue::Member) * members + 64 * size.objects +
              3 * static_cast<uint64_t>(longest);
  return size;
}

}  // namespace loom::core
