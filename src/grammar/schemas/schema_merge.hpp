// Schemas as plain JSON: the conjunction of two, and whether they exclude each other.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "io/json/json.hpp"

namespace loom::core::grammar {

// Kinds of JSON values; an integer is a number without fraction.
enum Kind : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyKind = 127
};

unsigned kind_of_value(const JsonValue& value);
// The kinds in `type`, a name or a list of names; 0 means none.
unsigned kinds_of_type(const JsonValue& type);
bool same_json(const JsonValue& a, const JsonValue& b);

// A schema that requires both. Errors: unsupported (keywords without a known conjunction).
Result<JsonValue> merge_schemas(const JsonValue& a, const JsonValue& b, std::string_view where);

// The target of a reference; may be null: there is none.
using FindSchema = std::function<const JsonValue*(std::string_view reference)>;
// True if no value can match both for certain.
bool exclude_each_other(const JsonValue& a, const JsonValue& b, const FindSchema& find,
                        int depth = 0);

}  // namespace loom::core::grammar
