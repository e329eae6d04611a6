// String methods that search, classify characters, or pad.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// Positions count characters. If there is no match, -1, or an Error for index() and rindex().
Result<Value> find(const Call& call, const std::string& text, Meter& meter) {
  const Value part = call.argument(0);
  if (!part.is(Kind::string) || call.arguments.size() > 1)
    return meter.refuse(cat(call.name, "() of anything but one string"), call.offset);
  const bool from_end = call.name[0] == 'r';
  const size_t found = from_end ? text.rfind(part.text()) : text.find(part.text());
  if (found == std::string::npos) {
    const bool fails = call.name == "index" || call.name == "rindex";
    if (fails) return meter.fail("substring not found", call.offset);
    return Value::integer(-1);
  }
  const auto before = text::count_code_points(std::string_view(text).substr(0, found));
  return Value::integer(static_cast<int64_t>(before));
}

Result<Value> count(const Call& call, const std::string& text, Meter& meter) {
  const Value part = call.argument(0);
  if (!part.is(Kind::string) || call.arguments.size() > 1)
    return meter.refuse("count() of anything but one string", call.offset);
  if (part.text().empty())
    return Value::integer(static_cast<int64_t>(text::count_code_points(text)) + 1);
  int64_t times = 0;
  for (size_t at = text.find(part.text()); at != std::string::npos;
       at = text.find(part.text(), at + part.text().size())) {
    ++times;
  }
  return Value::integer(times);
}

bool all_are(const std::string& text, bool (*is)(char32_t)) {
  const auto list = characters(text);
  return !list.empty() && std::all_of(list.begin(), list.end(), [&](std::string_view one) {
    return is(text::code_point_at(one, 0).value);
  });
}

bool is_letter(char32_t c) {
  return c != '_' && text::is_word(c) && !text::is_numeric(c);
}

bool is_decimal(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : text::is_numeric(c) && c > 0x65F;
}

Result<Value> question(const Call& call, const std::string& text, bool& known) {
  const std::string_view name = call.name;
  if (name == "isdigit" || name == "isdecimal") return Value::boolean(all_are(text, is_decimal));
  if (name == "isnumeric") return Value::boolean(all_are(text, text::is_numeric));
  if (name == "isalpha") return Value::boolean(all_are(text, is_letter));
  if (name == "isspace") return Value::boolean(all_are(text, text::is_python_space));
  if (name == "isalnum") {
    return Value::boolean(
        all_are(text, [](char32_t c) { return is_letter(c) || text::is_numeric(c); }));
  }
  if (name == "isascii") {
    return Value::boolean(text.empty() || all_are(text, [](char32_t c) { return c < 0x80; }));
  }
  const std::string small = lower_text(text), large = upper_text(text);
  if (name == "islower") return Value::boolean(text == small && small != large);
  if (name == "isupper") return Value::boolean(text == large && small != large);
  known = false;
  return Value();
}

Result<Value> pad(const Call& call, const std::string& text, Meter& meter) {
  const Value width = call.argument(0, "width"), with = call.argument(1, "fillchar");
  if (!width.is_integer() || width.number() > 1'000'000)
    return meter.fail(cat(call.name, "() needs a width up to a million"), call.offset);
  const auto length = static_cast<int64_t>(text::count_code_points(text));
  const auto missing = static_cast<size_t>(std::max<int64_t>(width.number() - length, 0));
  const std::string fill = with.is(Kind::string) ? with.text() : " ";
  const auto repeated = [&](size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += fill;
    return out;
  };
  if (call.name == "zfill") {
    const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
    return meter.make(
        (sign ? text.substr(0, 1) : "") + std::string(missing, '0') + text.substr(sign ? 1 : 0),
        call.offset);
  }
  size_t left = call.name == "rjust" ? missing : 0;
  if (call.name == "center") {
    // An odd rest is split as in CPython.
    left = missing / 2 + (missing & static_cast<size_t>(width.number()) & 1);
  }
  return meter.make(repeated(left) + text + repeated(missing - left), call.offset);
}

}  // namespace

Result<Value> text_search(const Call& call, const std::string& text, bool& known, Meter& meter) {
  const std::string_view name = call.name;
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex")
    return find(call, text, meter);
  if (name == "count") return count(call, text, meter);
  if (name == "zfill" || name == "ljust" || name == "rjust" || name == "center")
    return pad(call, text, meter);
  if (name == "format") return format_braces(call, text, meter);
  return question(call, text, known);
}

}  // namespace loom::core::jinja
