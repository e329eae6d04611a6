// Grammars in GBNF, the notation of llama.cpp: rules `name ::= ...` of "literals", [classes], .,
// names, groups, alternatives and repetitions ? * + {m} {m,} {m,n}; comments from # to the end of
// the line. A rule ends with its line, but lines continue inside of ( ) and after | and ::=.
//
// Three extensions are not in GBNF:
//   %json SCHEMA           a JSON text that matches the schema, which is inline JSON.
//   %until "text"          any bytes up to and including the first "text".
//   %text ("a" x | "b" y)  any bytes, in which "a" is followed by x and then by the end; with
//                          %text* any bytes may follow x.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "grammar/builder.hpp"

namespace loom::core::grammar {

// Adds the rule `root` of `text` to `builder`. Errors: invalid_argument with line and column; those
// of add_json_schema() for a schema.
Result<ExprId> add_gbnf(Builder& builder, std::string_view text);

}  // namespace loom::core::grammar
