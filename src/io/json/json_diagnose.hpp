// The reason why a JSON text is invalid, in our wording and with the exact byte. The JSON library
// only reports that a text is invalid. This file checks the location again and describes the fault.
// It is not a parser: it checks one token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loom::core {

// The kind of the last accepted token, which determines what may follow.
enum class JsonContext {
  start,
  after_key,
  array_open,
  array_value,
  object_open,
  object_value,
  end
};

struct JsonFault {
  size_t offset = 0;
  std::string message;
};

size_t skip_json_space(std::string_view text, size_t at);

// The end of the number at `at`, or 0 with `fault` set.
size_t scan_json_number(std::string_view text, size_t at, JsonFault& fault);

// The fault of `text`, which is valid up to `from`, the end of the last accepted token.
JsonFault diagnose_json(std::string_view text, size_t from, JsonContext context);

}  // namespace loom::core
