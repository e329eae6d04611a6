// Formatting of Python: "%s" % values, and "{}".format(values) without format specifications.
#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// One conversion: flags, width, precision and the letter.
struct Conversion {
  bool left = false, zero = false, sign = false;
  size_t width = 0;
  int precision = -1;
  char letter = 0;
};

size_t read_number(const std::string& text, size_t& at) {
  size_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    value = std::min<size_t>(value * 10 + static_cast<size_t>(text[at] - '0'), 100'000);
  return value;
}

Conversion read_conversion(const std::string& format, size_t& at) {
  Conversion c;
  for (; at < format.size(); ++at) {
    if (format[at] == '-') {
      c.left = true;
    } else if (format[at] == '0') {
      c.zero = true;
    } else if (format[at] == '+') {
      c.sign = true;
    } else {
      break;
    }
  }
  c.width = read_number(format, at);
  if (at < format.size() && format[at] == '.') {
    ++at;
    c.precision = static_cast<int>(read_number(format, at));
  }
  if (at < format.size()) c.letter = format[at++];
  return c;
}

std::string fixed(double value, int digits) {
  char buffer[1200];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, value,
                                     std::chars_format::fixed, digits < 0 ? 6 : digits);
  return {buffer, written.ptr};
}

Result<std::string> convert(const Conversion& c, const Value& value, Meter& meter, int64_t offset) {
  const bool number = value.is_number();
  switch (c.letter) {
    case 's': {
      LOOM_ASSIGN(std::string text, meter.to_text(value, offset));
      if (c.precision < 0) return text;
      const auto list = characters(text);
      std::string cut;
      for (size_t i = 0; i < std::min(list.size(), static_cast<size_t>(c.precision)); ++i)
        cut += list[i];
      return cut;
    }
    case 'r': LOOM_TRY(meter.work(64 * value.weight(), offset)); return python_repr(value);
    case 'd':
    case 'i':
      if (!number || std::abs(value.as_real()) > 9e18) break;
      return std::to_string(value.is_integer() ? value.number()
                                               : static_cast<int64_t>(value.as_real()));
    case 'f':
      if (!number || c.precision > 300) break;
      return fixed(value.as_real(), c.precision);
    default: return meter.refuse(cat("the conversion '%", printable({&c.letter, 1}), "'"), offset);
  }
  return meter.fail(cat("'%", std::string(1, c.letter), "' of ", kind_name(value)), offset);
}

std::string padded(const Conversion& c, std::string text) {
  const bool number = c.letter != 's' && c.letter != 'r';
  if (number && c.sign && text[0] != '-') text = "+" + text;
  const size_t length = text::count_code_points(text);
  if (length >= c.width) return text;
  if (c.left) return text + std::string(c.width - length, ' ');
  if (!c.zero || !number) return std::string(c.width - length, ' ') + text;
  const size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
  return text.substr(0, sign) + std::string(c.width - length, '0') + text.substr(sign);
}

}  // namespace

Result<Value> format_percent(const std::string& format, const Value& values, Meter& meter,
                             int64_t offset) {
  const bool tuple = values.is(Kind::list) && values.sequence() == Value::Sequence::tuple;
  const Value::List list = tuple ? values.items() : Value::List{values};
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    if (format.compare(at, 2, "%(") == 0) return meter.refuse("'%' with names", offset);
    const Conversion c = read_conversion(format, ++at);
    if (c.letter == '%') {
      out += '%';
      continue;
    }
    if (c.letter == 0) return meter.fail("a '%' without its letter", offset);
    if (next >= list.size()) return meter.fail("too few values for '%'", offset);
    LOOM_ASSIGN(std::string text, convert(c, list[next++], meter, offset));
    LOOM_TRY(meter.work(c.width + text.size(), offset));
    out += padded(c, std::move(text));
  }
  const bool whole = !tuple && (values.is(Kind::dict) || values.is(Kind::list));
  if (next < list.size() && !whole) return meter.fail("too many values for '%'", offset);
  return meter.make(std::move(out), offset);
}

Result<Value> format_braces(const Call& call, const std::string& format, Meter& meter) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    const std::string two = format.substr(at, 2);
    if (two == "{{" || two == "}}") {
      out += two[0];
      at += 2;
      continue;
    }
    if (format[at] == '}') return meter.fail("a single '}' in a format", call.offset);
    if (format[at] != '{') {
      out += format[at++];
      continue;
    }
    const size_t end = format.find('}', at);
    if (end == std::string::npos) return meter.fail("a single '{' in a format", call.offset);
    const std::string name = format.substr(at + 1, end - at - 1);
    at = end + 1;
    if (name.find_first_of("!:.[{") != std::string::npos)
      return meter.refuse("a format with more than a name", call.offset);
    const bool counted = name.find_first_not_of("0123456789") == std::string::npos;
    size_t digits = 0;
    const size_t index = name.empty() ? next++ : read_number(name, digits);
    if (counted && index >= call.arguments.size())
      return meter.fail("too few values for format()", call.offset);
    const Value value = counted ? call.arguments[index] : call.argument(SIZE_MAX, name);
    LOOM_ASSIGN(const std::string text, meter.to_text(value, call.offset));
    LOOM_TRY(meter.work(text.size(), call.offset));
    out += text;
  }
  return meter.make(std::move(out), call.offset);
}

}  // namespace loom::core::jinja
