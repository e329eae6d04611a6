// Grammars in GBNF, the notation of llama.cpp: rules `name ::= ...` of "literals", [classes], .,
// names, groups, alternatives and repetitions ? * + {m} {m,} {m,n}; comments from # to the end of
// the line. A rule ends with its line, but inside of ( ) and after | and ::= lines go on.
//
// And three that GBNF does not have:
//   %json SCHEMA           a JSON text of the schema, which stands there as JSON
//   %until "text"          any bytes up to and with the first "text"
//   %text ("a" x | "b" y)  any bytes, in which after "a" x follows, and then nothing; with %text*
//                          anything goes on after x
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "grammar/builder.hpp"

namespace loom::core::grammar {

// The rule `root` of `text`, added to `builder`. Errors: invalid_argument with line and column;
// those of a schema, as add_json_schema() has them.
Result<ExprId> add_gbnf(Builder& builder, std::string_view text);

}  // namespace loom::core::grammar
