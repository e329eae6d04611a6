#include "json_value.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace loom::cli {

struct JsonCopy {
  static JsonValue of(const nlohmann::ordered_json& from) {
    using Kind = JsonValue::Kind;
    JsonValue value;
    value.kind_ = from.is_boolean()  ? Kind::boolean
                  : from.is_number() ? Kind::number
                  : from.is_string() ? Kind::text
                  : from.is_array()  ? Kind::array
                  : from.is_object() ? Kind::object
                                     : Kind::null;
    if (from.is_boolean()) value.boolean_ = from.get<bool>();
    if (from.is_string()) value.text_ = from.get<std::string>();
    if (from.is_number_unsigned()) {
      const auto number = from.get<uint64_t>();
      if (number <= INT64_MAX) value.integer_ = static_cast<int64_t>(number);
    } else if (from.is_number_integer()) {
      value.integer_ = from.get<int64_t>();
    }
    if (from.is_number()) value.number_ = from.get<double>();
    if (from.is_array())
      for (const nlohmann::ordered_json& element : from) value.elements_.push_back(of(element));
    if (from.is_object())
      for (const auto& [name, member] : from.items()) value.members_.emplace_back(name, of(member));
    return value;
  }
};

Result<JsonValue> JsonValue::parse(std::string_view text, const std::string& where) {
  using Parsed = nlohmann::ordered_json;
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

Json JsonValue::json() const {
  Json out = kind_ == Kind::object ? Json::object() : Json::array();
  switch (kind_) {
    case Kind::null: return Json::real(std::nan(""));  // written as null
    case Kind::boolean: return Json::boolean(*boolean_);
    case Kind::number: return integer_ ? Json::integer(*integer_) : Json::real(*number_);
    case Kind::text: return Json::string(text_);
    case Kind::array: break;
    case Kind::object: break;
  }
  for (const JsonValue& element : elements_) out.push(element.json());
  for (const auto& [name, member] : members_) out.add(name, member.json());
  return out;
}

}  // namespace loom::cli
