// See json_diagnose.hpp. Every function takes the offset of the token to check and returns a fault.
// If it finds no fault (a disagreement with the library, never observed), the fault says so at the
// location where the library stopped.
#include "io/json/json_diagnose.hpp"

#include "base/text.hpp"
#include "io/bytes/utf8.hpp"

namespace loom::core {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string hex_byte(char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return cat("byte 0x", kHex[byte >> 4], kHex[byte & 15]);
}

// The token at `at`, for a message: 'nul', ',', a string, byte 0xff, the end.
std::string found(std::string_view text, size_t at) {
  if (at >= text.size()) return "the end of the text";
  const char c = text[at];
  if (c == '"') return "a string";
  if (c <= 0x20 || c == 0x7f) return hex_byte(c);
  size_t length = 0;
  while (at + length < text.size() && length < 16 && is_word(text[at + length])) ++length;
  return cat('\'', text.substr(at, length == 0 ? 1 : length), '\'');
}

// Four hex digits at `at`, or -1.
int hex4(std::string_view text, size_t at) {
  int value = 0;
  for (size_t i = at; i < at + 4; ++i) {
    const char c = i < text.size() ? text[i] : '\0';
    if (is_digit(c)) {
      value = value * 16 + (c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      value = value * 16 + ((c | 0x20) - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

// Bytes of the escape at `at` (a backslash), or 0 with `fault` set.
size_t escape_length(std::string_view text, size_t at, JsonFault& fault) {
  const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
  if (std::string_view("\"\\/bfnrt").find(kind) != std::string_view::npos) return 2;
  if (kind != 'u') {
    fault = {at, "bad escape in a string; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"};
    return 0;
  }
  const int unit = hex4(text, at + 2);
  if (unit < 0) {
    fault = {at, "expected four hex digits after \\u"};
    return 0;
  }
  if (unit < 0xD800 || unit > 0xDFFF) return 6;
  const bool pair = unit < 0xDC00 && text.substr(at + 6, 2) == "\\u";
  const int low = pair ? hex4(text, at + 8) : -1;
  if (low >= 0xDC00 && low <= 0xDFFF) return 12;
  fault = {at, "unpaired surrogate in a string"};
  return 0;
}

JsonFault string_fault(std::string_view text, size_t at) {
  JsonFault fault;
  for (size_t i = at + 1; i < text.size();) {
    const char c = text[i];
    if (c == '"') return {at, "this string cannot be read"};
    if (static_cast<unsigned char>(c) < 0x20)
      return {i, cat(hex_byte(c), " inside a string; it must be escaped")};
    const size_t length =
        c == '\\' ? escape_length(text, i, fault) : utf8_length(text.substr(i, 4));
    if (length == 0 && c == '\\') return fault;
    if (length == 0) return {i, cat("invalid UTF-8 in a string: ", hex_byte(c))};
    i += length;
  }
  return {at, "a string that never ends"};
}

JsonFault number_fault(std::string_view text, size_t at) {
  JsonFault fault;
  if (scan_json_number(text, at, fault) != 0) {
    fault = {at, "this number is too large for a 64-bit real"};
  }
  return fault;
}

JsonFault value_fault(std::string_view text, size_t at, std::string_view expected) {
  if (at < text.size() && text[at] == '"') return string_fault(text, at);
  if (at < text.size() && (text[at] == '-' || is_digit(text[at]))) return number_fault(text, at);
  return {at, cat("expected ", expected, ", found ", found(text, at))};
}

JsonFault key_fault(std::string_view text, size_t at, std::string_view expected) {
  if (at < text.size() && text[at] == '"') return string_fault(text, at);
  return {at, cat("expected ", expected, ", found ", found(text, at))};
}

}  // namespace

size_t skip_json_space(std::string_view text, size_t at) {
  while (at < text.size() &&
         (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
    ++at;
  }
  return at;
}

size_t scan_json_number(std::string_view text, size_t at, JsonFault& fault) {
  size_t i = at;
  const auto digits = [&](std::string_view after) {
    const size_t first = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    if (i > first) return true;
    fault = {i, cat("expected a digit after '", after, "', found ", found(text, i))};
    return false;
  };
  const auto here = [&](char lower) { return i < text.size() && (text[i] | 0x20) == lower; };
  if (here('-')) ++i;
  if (here('0')) {
    ++i;
  } else if (!digits("-")) {
    return 0;
  }
  if (here('.')) {
    ++i;
    if (!digits(".")) return 0;
  }
  if (here('e')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits("e")) return 0;
  }
  return i;
}

JsonFault diagnose_json(std::string_view text, size_t from, JsonContext context) {
  const size_t at = skip_json_space(text, from);
  const char c = at < text.size() ? text[at] : '\0';
  const auto next = [&] { return skip_json_space(text, at + 1); };
  switch (context) {
    case JsonContext::start: return value_fault(text, at, "a value");
    case JsonContext::array_open: return value_fault(text, at, "a value or ']'");
    case JsonContext::object_open: return key_fault(text, at, "a key or '}'");
    case JsonContext::after_key:
      if (c == ':') return value_fault(text, next(), "a value");
      return {at, cat("expected ':' after a key, found ", found(text, at))};
    case JsonContext::array_value:
      if (c == ',') return value_fault(text, next(), "a value after ','");
      return {at, cat("expected ',' or ']', found ", found(text, at))};
    case JsonContext::object_value:
      if (c == ',') return key_fault(text, next(), "a key after ','");
      return {at, cat("expected ',' or '}', found ", found(text, at))};
    case JsonContext::end: break;
  }
  return {at, cat("expected the end of the text, found ", found(text, at))};
}

}  // namespace loom::core
