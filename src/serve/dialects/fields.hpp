// Fields of a request: one table per dialect lists the fields, their values and their targets.
// Messages name the field and the value. null counts as absent, as clients expect.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// ---- reading ------------------------------------------------------------------------------------

Status take_bool(const JsonValue& value, std::string_view name, bool& to);
Status take_int(const JsonValue& value, std::string_view name, int64_t low, int64_t high,
                int64_t& to);
Status take_real(const JsonValue& value, std::string_view name, double low, double high, float& to);
Status take_text(const JsonValue& value, std::string_view name, std::string& to);
// A text or a list of texts.
Status take_texts(const JsonValue& value, std::string_view name, size_t most,
                  std::vector<std::string>& to);
// Content of a message: a text, or a list of parts that are texts, joined by `separator`.
Result<std::string> content_text(const JsonValue& content, std::string_view where,
                                 std::string_view separator = {});
// For unsupported features, which must be off: null, false, 0, 1 for a factor, "", [] or {}.
Status must_be_off(const JsonValue& value, std::string_view name, double off = 0);

template <class T>
struct BodyField {
  std::string_view name;
  std::function<Status(const JsonValue& value, std::string_view name, T& to)> take;
};

// Takes every member of `body` that the table has. Others are ignored, because clients send dozens;
// with `strict` they are errors.
template <class T>
Status take_fields(const JsonValue& body, std::span<const BodyField<T>> table, bool strict, T& to) {
  for (const JsonValue::Member& member : body.members()) {
    const auto known = [&](const BodyField<T>& f) { return f.name == member.first; };
    const auto field = std::find_if(table.begin(), table.end(), known);
    if (field == table.end()) {
      if (strict) return invalid(cat("unknown field ", printable(member.first)));
    } else if (field->take && !member.second.is_null()) {
      LOOM_TRY(field->take(member.second, field->name, to));
    }
  }
  return {};
}

// Sample values of every JSON kind, to find out which of them a field accepts.
const std::vector<std::pair<const char*, std::vector<JsonValue>>>& json_samples();

// ---- writing ------------------------------------------------------------------------------------

inline JsonValue json(std::string_view text) {
  return JsonValue::string(std::string(text));
}
inline JsonValue json(const char* text) {
  return JsonValue::string(text);
}
inline JsonValue json(bool value) {
  return JsonValue::boolean(value);
}
inline JsonValue json(int64_t value) {
  return JsonValue::integer(value);
}
inline JsonValue json(double value) {
  return JsonValue::real(value);
}
inline JsonValue json(JsonValue value) {
  return value;
}
JsonValue json_ids(std::span<const int32_t> ids);

// object("id", 3, "text", "abc")
inline void add_members(JsonValue&) {}
template <class V, class... Rest>
void add_members(JsonValue& to, const char* name, V value, Rest... rest) {
  if constexpr (std::is_integral_v<V> && !std::is_same_v<V, bool>) {
    to.add(name, json(static_cast<int64_t>(value)));
  } else {
    to.add(name, json(std::move(value)));
  }
  add_members(to, std::move(rest)...);
}
template <class... Members>
JsonValue object(Members... members) {
  JsonValue out = JsonValue::object();
  add_members(out, std::move(members)...);
  return out;
}
template <class... Elements>
JsonValue list(Elements... elements) {
  JsonValue out = JsonValue::array();
  (out.push(json(std::move(elements))), ...);
  return out;
}

}  // namespace loom::core
