// JsonValue: construction, copies, access. Documents are parsed and printed in json.cpp and
// json_write.cpp. Invariant: strings, arrays and objects own the payload's pointer, which may be
// null and then means empty.
#include "base/text.hpp"
#include "io/json/json.hpp"

namespace loom::core {

JsonValue::JsonValue(const JsonValue& other)
    : payload_(other.payload_), offset_(other.offset_), type_(other.type_) {
  if (type_ == Type::string && payload_.string_value != nullptr) {
    payload_.string_value = new std::string(*payload_.string_value);
  } else if (type_ == Type::array && payload_.array_value != nullptr) {
    payload_.array_value = new std::vector<JsonValue>(*payload_.array_value);
  } else if (type_ == Type::object && payload_.object_value != nullptr) {
    payload_.object_value = new std::vector<Member>(*payload_.object_value);
  }
}

void JsonValue::swap(JsonValue& other) noexcept {
  std::swap(payload_, other.payload_);
  std::swap(offset_, other.offset_);
  std::swap(type_, other.type_);
}

void JsonValue::free_owned() {
  if (type_ == Type::string) {
    delete payload_.string_value;
  } else if (type_ == Type::array) {
    delete payload_.array_value;
  } else {
    delete payload_.object_value;
  }
}

JsonValue JsonValue::boolean(bool v) {
  JsonValue out;
  out.type_ = Type::boolean;
  out.payload_.truth = v;
  return out;
}

JsonValue JsonValue::integer(int64_t v) {
  JsonValue out;
  out.type_ = Type::integer;
  out.payload_.int_value = v;
  return out;
}

JsonValue JsonValue::real(double v) {
  JsonValue out;
  out.type_ = Type::real;
  out.payload_.real_value = v;
  return out;
}

JsonValue JsonValue::string(std::string v) {
  JsonValue out;
  out.type_ = Type::string;
  out.payload_.string_value = v.empty() ? nullptr : new std::string(std::move(v));
  return out;
}

JsonValue JsonValue::array(std::vector<JsonValue> v) {
  JsonValue out;
  out.type_ = Type::array;
  out.payload_.array_value = v.empty() ? nullptr : new std::vector<JsonValue>(std::move(v));
  return out;
}

JsonValue JsonValue::object(std::vector<Member> v) {
  JsonValue out;
  out.type_ = Type::object;
  out.payload_.object_value = v.empty() ? nullptr : new std::vector<Member>(std::move(v));
  return out;
}

const std::string& JsonValue::text() const {
  static const std::string kEmpty;
  return is_string() && payload_.string_value != nullptr ? *payload_.string_value : kEmpty;
}

const std::vector<JsonValue>& JsonValue::elements() const {
  static const std::vector<JsonValue> kEmpty;
  return is_array() && payload_.array_value != nullptr ? *payload_.array_value : kEmpty;
}

const std::vector<JsonValue::Member>& JsonValue::members() const {
  static const std::vector<Member> kEmpty;
  return is_object() && payload_.object_value != nullptr ? *payload_.object_value : kEmpty;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

void JsonValue::add(std::string key, JsonValue value) {
  if (!is_object()) *this = object();
  if (payload_.object_value == nullptr) payload_.object_value = new std::vector<Member>();
  payload_.object_value->emplace_back(std::move(key), std::move(value));
}

void JsonValue::push(JsonValue value) {
  if (!is_array()) *this = array();
  if (payload_.array_value == nullptr) payload_.array_value = new std::vector<JsonValue>();
  payload_.array_value->push_back(std::move(value));
}

std::string JsonValue::describe() const {
  switch (type_) {
    case Type::null: return "null";
    case Type::boolean: return payload_.truth ? "true" : "false";
    case Type::integer: return std::to_string(payload_.int_value);
    case Type::unsigned_integer: return std::to_string(payload_.uint_value);
    case Type::real: return dump_json(*this);
    case Type::string: return cat('"', printable(text(), 40), '"');
    case Type::array: return "an array";
    case Type::object: return "an object";
  }
  return "nothing";
}

Error JsonValue::type_error(std::string_view where, std::string_view expected) const {
  return bad_file(cat("expected ", expected, ", found ", describe()), std::string(where), offset());
}

Result<bool> JsonValue::as_bool(std::string_view where) const {
  if (!is_bool()) return type_error(where, "true or false");
  return payload_.truth;
}

Result<int64_t> JsonValue::as_int(std::string_view where) const {
  if (type_ != Type::integer) return type_error(where, "an integer of 64 bits");
  return payload_.int_value;
}

Result<double> JsonValue::as_double(std::string_view where) const {
  if (type_ == Type::integer) return static_cast<double>(payload_.int_value);
  if (type_ == Type::unsigned_integer) return static_cast<double>(payload_.uint_value);
  if (type_ != Type::real) return type_error(where, "a number");
  return payload_.real_value;
}

Result<std::string> JsonValue::as_string(std::string_view where) const {
  if (!is_string()) return type_error(where, "a string");
  return text();
}

}  // namespace loom::core
