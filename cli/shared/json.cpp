#include "json.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "console.hpp"

namespace loom::cli {
namespace {

std::string quoted(std::string_view text) {
  using Value = nlohmann::json;
  return Value(std::string(text)).dump(-1, ' ', false, Value::error_handler_t::replace);
}

}  // namespace

Json Json::array() {
  return Json('[', ']', {});
}
Json Json::array_of(const std::vector<Json>& elements) {
  Json list = array();
  for (const Json& element : elements) list.push(element);
  return list;
}
Json Json::object() {
  return Json('{', '}', {});
}
Json Json::boolean(bool value) {
  return Json(0, 0, value ? "true" : "false");
}
Json Json::integer(int64_t value) {
  return Json(0, 0, fmt::format("{}", value));
}
Json Json::real(double value) {
  if (!std::isfinite(value)) return Json(0, 0, "null");
  std::string digits = fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return Json(0, 0, digits);
}
Json Json::string(std::string_view value) {
  return Json(0, 0, quoted(value));
}

Json& Json::append(const std::string& part) {
  if (!text_.empty()) text_ += ',';
  text_ += part;
  return *this;
}
Json& Json::push(const Json& element) {
  return append(element.text());
}
Json& Json::add(std::string_view name, const Json& value) {
  return append(quoted(name) + ":" + value.text());
}

std::string Json::text() const {
  return open_ == 0 ? text_ : open_ + text_ + close_;
}

std::string Json::pretty() const {
  return nlohmann::ordered_json::parse(text()).dump(2);
}

JsonObject& JsonObject::set(std::string_view name, std::string_view value) {
  return set(name, Json::string(value));
}
JsonObject& JsonObject::set(std::string_view name, bool value) {
  return set(name, Json::boolean(value));
}
JsonObject& JsonObject::set(std::string_view name, int64_t value) {
  return set(name, Json::integer(value));
}
JsonObject& JsonObject::set(std::string_view name, double value) {
  return set(name, Json::real(value));
}
JsonObject& JsonObject::set(std::string_view name, const std::vector<int32_t>& value) {
  Json list = Json::array();
  for (const int32_t number : value) list.push(Json::integer(number));
  return set(name, list);
}
JsonObject& JsonObject::set(std::string_view name, const std::vector<std::string>& value) {
  Json list = Json::array();
  for (const std::string& text : value) list.push(Json::string(text));
  return set(name, list);
}
JsonObject& JsonObject::set(std::string_view name, const Json& value) {
  value_.add(name, value);
  return *this;
}
void JsonObject::print() const {
  write_out(value_.text() + "\n");
}

}  // namespace loom::cli
