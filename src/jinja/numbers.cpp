// Python's parsing, rounding and printing of numbers, and repr() of whole values.
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

std::string without_space(std::string_view text) {
  while (!text.empty()) {
    const text::CodePoint c = text::code_point_at(text, 0);
    if (!text::is_python_space(c.value)) break;
    text.remove_prefix(c.length);
  }
  while (!text.empty()) {
    const text::CodePoint c = text::code_point_before(text, text.size());
    if (!text::is_python_space(c.value)) break;
    text.remove_suffix(c.length);
  }
  return std::string(text);
}

// Digits with single underscores between them; "" if the text has another form.
std::string plain_digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (text[i] == '_' && between) continue;
    if (text[i] == '_') return {};
    out += text[i];
  }
  return out;
}

bool read_integer(std::string_view source, int base, int64_t& out) {
  std::string text = plain_digits(without_space(source));
  if (!text.empty() && text[0] == '+' && text.size() > 1 && text[1] != '-') text.erase(0, 1);
  const size_t digits = text.starts_with('-') ? 1 : 0;
  const char prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '0';
  if (prefix != '0' && text.size() > digits + 2 && text[digits] == '0' &&
      (text[digits + 1] | 0x20) == prefix && text[digits + 2] != '-')
    text.erase(digits, 2);
  const char* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, out, base);
  return !text.empty() && read.ec == std::errc() && read.ptr == last;
}

bool read_real(std::string_view source, double& out) {
  std::string text = plain_digits(without_space(source));
  if (!text.empty() && text[0] == '+' && text.size() > 1 && text[1] != '-') text.erase(0, 1);
  const char* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, out);
  return !text.empty() && read.ec == std::errc() && read.ptr == last &&
         text.find_first_of("xX(") == std::string::npos;
}

Result<Value> truncated(double value, const Value& otherwise, const Call& call, Meter& meter) {
  if (!std::isfinite(value)) return otherwise;
  if (std::fabs(value) >= 9.2e18) return meter.refuse("an integer that large", call.offset);
  return Value::integer(static_cast<int64_t>(value));
}

Result<Value> to_integer(const Call& call, Meter& meter) {
  Value otherwise = call.argument(0, "default");
  if (otherwise.is(Kind::undefined)) otherwise = Value::integer(0);
  const Value base = call.argument(1, "base");
  if (call.self.is(Kind::undefined)) return meter.undefined(call.self, call.offset);
  if (call.self.is_integer()) return Value::integer(call.self.number());
  if (call.self.is(Kind::real)) return truncated(call.self.as_real(), otherwise, call, meter);
  if (!call.self.is(Kind::string)) return otherwise;
  LOOM_TRY(meter.work(call.self.text().size(), call.offset));
  if (base.is_integer() && (base.number() < 2 || base.number() > 36))
    return meter.refuse(cat("the base ", base.number()), call.offset);
  int64_t value = 0;
  if (read_integer(call.self.text(), base.is_integer() ? static_cast<int>(base.number()) : 10,
                   value))
    return Value::integer(value);
  double real = 0;
  if (read_real(call.self.text(), real)) return truncated(real, otherwise, call, meter);
  return otherwise;
}

Result<Value> to_real(const Call& call, Meter& meter) {
  Value otherwise = call.argument(0, "default");
  if (otherwise.is(Kind::undefined)) otherwise = Value::real(0);
  if (call.self.is(Kind::undefined)) return meter.undefined(call.self, call.offset);
  if (call.self.is_number()) return Value::real(call.self.as_real());
  LOOM_TRY(meter.work(call.self.text().size(), call.offset));
  double real = 0;
  return call.self.is(Kind::string) && read_real(call.self.text(), real) ? Value::real(real)
                                                                         : otherwise;
}

Result<Value> round_number(const Call& call, Meter& meter) {
  const Value precision = call.argument(0, "precision"), method = call.argument(1, "method");
  if (!call.self.is_number())
    return meter.fail(cat("cannot round ", kind_name(call.self)), call.offset);
  const int64_t digits = precision.is_integer() ? precision.number() : 0;
  if (digits < 0 || digits > 300) return meter.refuse("rounding to that many digits", call.offset);
  const std::string how = method.is(Kind::string) ? method.text() : "common";
  if (how == "ceil" || how == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = call.self.as_real() * scale;
    return Value::real((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (how != "common") return meter.fail("'round' knows common, ceil and floor", call.offset);
  if (call.self.is_integer()) return Value::integer(call.self.number());
  // The nearest decimal with this many digits, ties to even, of the exact value, as to_chars writes
  // it.
  char buffer[800];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, call.self.as_real(),
                                     std::chars_format::fixed, static_cast<int>(digits));
  double rounded = call.self.as_real();
  if (written.ec == std::errc()) std::from_chars(buffer, written.ptr, rounded);
  return Value::real(rounded);
}

Result<Value> absolute(const Call& call, Meter& meter) {
  if (call.self.is(Kind::real)) return Value::real(std::fabs(call.self.as_real()));
  if (!call.self.is_integer() || call.self.number() == INT64_MIN)
    return meter.fail(cat("no abs of ", kind_name(call.self)), call.offset);
  return Value::integer(std::abs(call.self.number()));
}

// Characters that Python escapes in repr(): controls, formats, separators, private use. Code points
// that no version of Unicode assigns are printed.
bool is_hidden(char32_t c) {
  static constexpr struct {
    char32_t first, last;
  } kHidden[] = {{0, 0x1F},          {0x7F, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},
                 {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
                 {0x8E2, 0x8E2},     {0x1680, 0x1680},   {0x180E, 0x180E},   {0x2000, 0x200F},
                 {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},   {0xE000, 0xF8FF},
                 {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
                 {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
                 {0xF0000, 0x10FFFF}};
  for (const auto& range : kHidden) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

void append_hex(std::string& out, char32_t c) {
  static constexpr char kHex[] = "0123456789abcdef";
  const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int i = digits - 1; i >= 0; --i) out += kHex[(c >> (4 * i)) & 15];
}

void append_repr(std::string& out, std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (const std::string_view one : characters(text)) {
    const char32_t c = text::code_point_at(one, 0).value;
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += one;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_hidden(c)) {
      append_hex(out, c);
    } else {
      out += one;
    }
  }
  out += quote;
}

void append_repr(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: out += "Undefined"; break;
    case Kind::none: out += "None"; break;
    case Kind::boolean: out += value.number() != 0 ? "True" : "False"; break;
    case Kind::integer: out += std::to_string(value.number()); break;
    case Kind::real: out += python_real(value.as_real()); break;
    case Kind::string: append_repr(out, value.text()); break;
    case Kind::list: {
      const bool tuple = value.sequence() == Value::Sequence::tuple;
      out += tuple ? '(' : '[';
      for (size_t i = 0; i < value.items().size(); ++i) {
        if (i > 0) out += ", ";
        append_repr(out, value.items()[i]);
      }
      if (tuple && value.items().size() == 1) out += ',';
      out += tuple ? ')' : ']';
      break;
    }
    case Kind::dict:
      out += '{';
      for (size_t i = 0; i < value.members().size(); ++i) {
        if (i > 0) out += ", ";
        int64_t number = 0;
        if (is_integer_key(value.members()[i].first, number)) {
          out += std::to_string(number);
        } else {
          append_repr(out, value.members()[i].first);
        }
        out += ": ";
        append_repr(out, value.members()[i].second);
      }
      out += '}';
      break;
    case Kind::space:
    case Kind::function: break;
  }
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> list;
  for (size_t at = 0; at < text.size();) {
    const size_t length = text::code_point_at(text, at).length;
    list.push_back(text.substr(at, length));
    at += length;
  }
  return list;
}

// repr(float): the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
std::string python_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[400];
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  std::string text(buffer, written.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string python_repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

Result<Value> number_filter(const Call& call, bool& known, Meter& meter) {
  known = true;
  if (call.name == "int") return to_integer(call, meter);
  if (call.name == "float") return to_real(call, meter);
  if (call.name == "round") return round_number(call, meter);
  if (call.name == "abs") return absolute(call, meter);
  known = false;
  return Value();
}

}  // namespace loom::core::jinja
