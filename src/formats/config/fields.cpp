// See fields.hpp.
#include "formats/config/fields.hpp"

#include "base/text.hpp"

namespace loom::core {

const JsonValue* ConfigFields::find(std::string_view key) const {
  const JsonValue* value = object_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Error ConfigFields::error(Code code, std::string_view key, std::string_view message) const {
  const JsonValue* value = object_.find(key);
  return make_error(code, cat(prefix_, key, ": ", message), where_,
                    value == nullptr ? -1 : value->offset());
}

Error ConfigFields::unexpected(std::string_view key, std::string_view expected) const {
  return bad(key, cat("expected ", expected, ", found ", find(key)->describe()));
}

Status ConfigFields::require(std::string_view key) const {
  if (find(key) == nullptr) return bad(key, "required, but absent");
  return {};
}

Status ConfigFields::read(std::string_view key, bool& out) const {
  const JsonValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_bool()) return unexpected(key, "true or false");
  out = *value->as_bool(key);
  return {};
}

Status ConfigFields::read(std::string_view key, std::string& out) const {
  const JsonValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) return unexpected(key, "a string");
  out = value->text();
  return {};
}

Status ConfigFields::read(std::string_view key, int64_t& out, int64_t min, int64_t max) const {
  const JsonValue* value = find(key);
  if (value == nullptr) return {};
  const auto number = value->as_int(key);
  if (!number.ok() || *number < min || *number > max) {
    return unexpected(key, cat("an integer from ", min, " to ", max));
  }
  out = *number;
  return {};
}

Status ConfigFields::read(std::string_view key, double& out, double min, double max) const {
  const JsonValue* value = find(key);
  if (value == nullptr) return {};
  const auto number = value->as_double(key);
  if (!number.ok() || *number < min || *number > max) {
    return unexpected(key, cat("a number from ", JsonValue::real(min).describe(), " to ",
                               JsonValue::real(max).describe()));
  }
  out = *number;
  return {};
}

}  // namespace loom::core
