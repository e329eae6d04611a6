#include "json_value.hpp"

#include <nlohmann/json.hpp>

namespace loom::cli {

struct JsonCopy {
  static JsonValue of(const nlohmann::json& from) {
    JsonValue value;
    if (from.is_boolean()) value.boolean_ = from.get<bool>();
    if (from.is_string()) value.text_ = from.get<std::string>();
    if (from.is_number_unsigned()) {
      const auto number = from.get<uint64_t>();
      if (number <= INT64_MAX) value.integer_ = static_cast<int64_t>(number);
    } else if (from.is_number_integer()) {
      value.integer_ = from.get<int64_t>();
    }
    if (from.is_number()) value.number_ = from.get<double>();
    value.is_array_ = from.is_array();
    if (from.is_array())
      for (const nlohmann::json& element : from) value.elements_.push_back(of(element));
    if (from.is_object())
      for (const auto& [name, member] : from.items()) value.members_.emplace_back(name, of(member));
    return value;
  }
};

Result<JsonValue> JsonValue::parse(std::string_view text, const std::string& where) {
  using Parsed = nlohmann::json;
  bool deep = false;
  const auto shallow = [&](int depth, Parsed::parse_event_t, Parsed&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  const Parsed parsed = Parsed::parse(text.begin(), text.end(), shallow, false);
  if (deep) return Error{Code::bad_file, "JSON of too many levels", where, -1};
  if (parsed.is_discarded()) return Error{Code::bad_file, "is not JSON", where, -1};
  return JsonCopy::of(parsed);
}

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const auto& [key, value] : members_)
    if (key == name) return &value;
  return nullptr;
}

std::string JsonValue::member_text(std::string_view name) const {
  const JsonValue* member = find(name);
  return member == nullptr ? std::string() : member->text();
}

}  // namespace loom::cli
