// JSON that functions of the C interface give.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace loom::capi {

// A JSON text that grows. Members are written by name, elements without one.
class JsonText {
 public:
  void open(char bracket, std::string_view name = {}) {
    begin(name);
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void add(std::string_view name, std::string_view value) {
    begin(name);
    quote(value);
  }
  template <std::integral T>
  void add(std::string_view name, T value) {
    begin(name);
    text_ += std::to_string(value);
  }
  // NaN and infinities, which JSON has not, are null.
  void add(std::string_view name, double value) {
    if (!std::isfinite(value)) return null(name);
    begin(name);
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_.append(digits.data(), end);
  }
  void null(std::string_view name) {
    begin(name);
    text_ += "null";
  }
  // `value`: a JSON text.
  void json(std::string_view name, std::string_view value) {
    begin(name);
    text_ += value;
  }
  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name) {
    if (!first_) text_ += ',';
    first_ = false;
    if (name.empty()) return;
    quote(name);
    text_ += ':';
  }
  void quote(std::string_view value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte < 0x20) {
        text_.append("\\u00").append({kDigits[byte >> 4], kDigits[byte & 15]});
        continue;
      }
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace loom::capi
