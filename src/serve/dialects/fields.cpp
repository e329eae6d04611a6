#include "serve/dialects/fields.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {
namespace {

Error expected(std::string_view name, std::string_view what, const JsonValue& got) {
  return invalid(cat(name, " must be ", what, "; got ", got.describe()));
}

}  // namespace

Status take_bool(const JsonValue& value, std::string_view name, bool& to) {
  if (!value.is_bool()) return expected(name, "true or false", value);
  LOOM_ASSIGN(to, value.as_bool(name));
  return {};
}

Status take_int(const JsonValue& value, std::string_view name, int64_t low, int64_t high,
                int64_t& to) {
  int64_t found = 0;
  bool fits = value.is_int();
  if (fits) {
    const Result<int64_t> number = value.as_int(name);
    fits = number.ok();
    if (fits) found = *number;
  } else if (value.is_number()) {  // 12.0, as some clients send it
    const Result<double> number = value.as_double(name);
    fits = number.ok() && std::floor(*number) == *number && std::fabs(*number) < 9e15;
    if (fits) found = static_cast<int64_t>(*number);
  }
  if (!fits || found < low || found > high)
    return expected(name, cat("an integer from ", low, " to ", high), value);
  to = found;
  return {};
}

Status take_real(const JsonValue& value, std::string_view name, double low, double high,
                 float& to) {
  const Result<double> number = value.as_double(name);
  if (!value.is_number() || !number.ok() || !(*number >= low && *number <= high))
    return expected(name, cat("a number from ", low, " to ", high), value);
  to = static_cast<float>(*number);
  return {};
}

Status take_text(const JsonValue& value, std::string_view name, std::string& to) {
  if (!value.is_string()) return expected(name, "a string", value);
  to = value.text();
  return {};
}

Status take_texts(const JsonValue& value, std::string_view name, size_t most,
                  std::vector<std::string>& to) {
  to.clear();
  if (value.is_string()) {
    to.push_back(value.text());
  } else {
    if (!value.is_array()) return expected(name, "a string or a list of strings", value);
    for (const JsonValue& one : value.elements()) {
      if (!one.is_string()) return expected(name, "a string or a list of strings", one);
      to.push_back(one.text());
    }
  }
  if (to.size() > most) return invalid(cat(name, " may hold ", most, " strings; got ", to.size()));
  // An empty string would end every text at once; clients send it to mean "none".
  std::erase(to, std::string());
  return {};
}

Result<std::string> content_text(const JsonValue& content, std::string_view where,
                                 std::string_view separator) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.text();
  if (!content.is_array())
    return invalid(cat(where, " must be a string or a list of parts; got ", content.describe()));
  std::string out;
  for (const JsonValue& part : content.elements()) {
    const JsonValue* type = part.find("type");
    const JsonValue* text = part.find("text");
    constexpr std::string_view kTexts[] = {"text", "input_text", "output_text", "reasoning_text"};
    const bool is_text =
        type != nullptr && std::ranges::find(kTexts, type->text()) != std::end(kTexts);
    if (!is_text || text == nullptr || !text->is_string()) {
      return make_error(Code::unsupported,
                        cat(where, " may hold parts of type \"text\" alone; got ",
                            type == nullptr ? part.describe() : type->describe()));
    }
    if (!out.empty()) out += separator;
    out += text->text();
  }
  return out;
}

Status must_be_off(const JsonValue& value, std::string_view name, double off) {
  bool is_off = value.is_null();
  if (value.is_bool()) {
    const Result<bool> on = value.as_bool(name);
    is_off = on.ok() && !*on;
  } else if (value.is_number()) {
    const Result<double> number = value.as_double(name);
    is_off = number.ok() && (*number == off);
  } else if (value.is_string()) {
    is_off = value.text().empty() || value.text() == "none";
  } else if (value.is_array()) {
    is_off = value.elements().empty();
  } else if (value.is_object()) {
    is_off = value.members().empty();
  }
  if (is_off) return {};
  return make_error(Code::unsupported, cat(name, " is not supported here; leave it out"));
}

JsonValue json_ids(std::span<const int32_t> ids) {
  JsonValue out = JsonValue::array();
  for (const int32_t id : ids) out.push(JsonValue::integer(id));
  return out;
}

}  // namespace loom::core
