// Patterns of JSON schemas: regular expressions of ECMA-262, over the characters of a string. They
// match the text of a JSON string (without its quotes), in which ", \ and control characters are
// escaped.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "grammar/builder.hpp"

namespace loom::core::grammar {

// A pattern that is not anchored by ^ or $ may match anywhere in the string. Errors: unsupported
// (look-around, references, \b, \p), invalid_argument (not a pattern).
Result<ExprId> add_pattern(Builder& builder, std::string_view pattern);

// One character of a set inside of a JSON string, in its shortest form.
ExprId json_chars(Builder& builder, const text::CharSet& set);
// `text` inside of a JSON string.
std::string json_escaped(std::string_view text);

}  // namespace loom::core::grammar
