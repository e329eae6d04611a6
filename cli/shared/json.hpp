// JSON output of --json: values that are built and written on one line. Members keep their order. A
// number that is not finite becomes null; bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loom::cli {

class Json {
 public:
  static Json array();
  static Json array_of(const std::vector<Json>& elements);
  static Json object();
  static Json boolean(bool value);
  static Json integer(int64_t value);
  // The shortest digits that read back as the same number, always in the form of a real: "1.0".
  static Json real(double value);
  static Json string(std::string_view value);

  Json& push(const Json& element);                      // of an array
  Json& add(std::string_view name, const Json& value);  // of an object
  bool empty() const { return text_.empty(); }
  std::string text() const;    // on one line
  std::string pretty() const;  // a line per value, indented by 2

 private:
  Json(char open, char close, std::string text)
      : open_(open), close_(close), text_(std::move(text)) {}
  Json& append(const std::string& part);

  char open_, close_;  // around text_; 0 means none
  std::string text_;
};

// An object under construction.
class JsonObject {
 public:
  JsonObject& set(std::string_view name, std::string_view value);
  JsonObject& set(std::string_view name, const char* value) {
    return set(name, std::string_view(value));
  }
  JsonObject& set(std::string_view name, bool value);
  JsonObject& set(std::string_view name, int value) {
    return set(name, static_cast<int64_t>(value));
  }
  JsonObject& set(std::string_view name, int64_t value);
  JsonObject& set(std::string_view name, double value);
  JsonObject& set(std::string_view name, const std::vector<int32_t>& value);
  JsonObject& set(std::string_view name, const std::vector<std::string>& value);
  JsonObject& set(std::string_view name, const Json& value);
  const Json& value() const { return value_; }
  // One line on stdout.
  void print() const;

 private:
  Json value_ = Json::object();
};

}  // namespace loom::cli
