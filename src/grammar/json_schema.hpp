// JSON schemas, draft 2020-12 as far as it can be held to while a text is written from left to
// right. What cannot is an error that names the place; nothing is left out in silence. Every text
// that the grammar allows is valid; not every valid text is allowed: members come in the order of
// `properties`, white space is bounded, numbers have bounded digits (docs/sampling.md).
#pragma once

#include "base/result.hpp"
#include "grammar/builder.hpp"
#include "io/json.hpp"

namespace loom::core::grammar {

struct SchemaOptions {
  // A space after colons; after commas and inside of brackets a space, or a line end and an
  // indentation. False: no white space.
  bool spaces = true;
  bool closed = false;  // additionalProperties and unevaluatedProperties are false where not given
};

// The schema as an expression; several may be added to one builder. Errors: unsupported (a keyword,
// format or pattern beyond the subset, branches of oneOf that are not told apart),
// invalid_argument (no schema); `where` is the JSON pointer of the place, from `#` on.
Result<ExprId> add_json_schema(Builder& builder, const JsonValue& schema,
                               const SchemaOptions& options = {});
// Any JSON value, or any object.
ExprId add_json_value(Builder& builder, const SchemaOptions& options = {});
ExprId add_json_object(Builder& builder, const SchemaOptions& options = {});

}  // namespace loom::core::grammar
