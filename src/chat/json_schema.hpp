// JSON Schema for arguments of tools: type, enum, const, anyOf, oneOf, allOf, $ref inside of the
// schema, properties, required, additionalProperties, items, and bounds of numbers, lengths and
// counts. Not a full validator: other keywords are ignored, and oneOf is treated as anyOf.
#pragma once

#include <string>

#include "io/json/json.hpp"

namespace loom::core {

// One line with the first violation of `schema` and its path below `name`; "" if there is none.
std::string schema_problem(const JsonValue& value, const JsonValue& schema,
                           const std::string& name);

}  // namespace loom::core
