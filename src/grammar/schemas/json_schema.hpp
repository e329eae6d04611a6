// JSON schemas, draft 2020-12, as far as they can be enforced while a text is written from left to
// right. An unsupported keyword is an error with its path; nothing is silently ignored. Every text
// that the grammar allows is valid, but not every valid text is allowed. Members come in the order
// of `properties`, white space is bounded, and numbers have bounded digits (docs/sampling.md).
#pragma once

#include "base/result.hpp"
#include "grammar/builder.hpp"
#include "io/json/json.hpp"

namespace loom::core::grammar {

struct SchemaOptions {
  // A space after colons. After commas and inside of brackets there is a space, or a line end and
  // an indentation. False: no white space.
  bool spaces = true;
  bool closed = false;  // additionalProperties and unevaluatedProperties default to false
};

// The schema as an expression; several may be added to one builder. Errors: unsupported (a keyword,
// format or pattern beyond the subset, branches of oneOf that cannot be distinguished),
// invalid_argument (not a schema). `where` is the JSON pointer of the location, from `#` on.
Result<ExprId> add_json_schema(Builder& builder, const JsonValue& schema,
                               const SchemaOptions& options = {});
// Any JSON value, or any object.
ExprId add_json_value(Builder& builder, const SchemaOptions& options = {});
ExprId add_json_object(Builder& builder, const SchemaOptions& options = {});

}  // namespace loom::core::grammar
