// JSON Schema for arguments of tools: type, enum, const, anyOf, oneOf, allOf, $ref inside of the
// schema, properties, required, additionalProperties, items, and bounds of numbers, lengths and
// counts. Not a full validator: other keywords are passed over, and oneOf is read as anyOf.
#pragma once

#include <string>

#include "io/json.hpp"

namespace loom::core {

// One line that names the first thing that `schema` forbids, with its path below `name`; "": none.
std::string schema_problem(const JsonValue& value, const JsonValue& schema,
                           const std::string& name);

}  // namespace loom::core
