// Tokens of a template: the text between tags, and the contents of tags. White space around tags
// follows transformers' Jinja setup: trim_blocks and lstrip_blocks are on, "-" and "+" signs work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core::jinja {

struct TemplateToken {
  enum class Kind : uint8_t {
    data,            // text outside of tags
    block_begin,     // {%
    block_end,       // %}
    variable_begin,  // {{
    variable_end,    // }}
    name,
    string,
    integer,
    real,
    symbol,  // an operator or a bracket
    end
  };
  Kind kind = Kind::end;
  std::string text;  // of strings, without quotes and escapes
  int64_t number = 0;
  double real = 0;
  int64_t offset = 0;
};

// Ends with one token of kind `end`. `source` is valid UTF-8 with "\n" line ends.
Result<std::vector<TemplateToken>> tokenize(std::string_view source, const std::string& where);

}  // namespace loom::core::jinja
