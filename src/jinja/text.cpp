// Operations on strings that exist as filters, as methods, or as both; and tojson.
#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/unicode.hpp"

namespace loom::core::jinja {
namespace {

enum Side : unsigned { kLeft = 1, kRight = 2 };

// Whether strip() removes this character: one of `characters`, or white space when that is
// undefined.
bool strippable(char32_t c, const Value& characters) {
  if (!characters.is(Value::Kind::string)) return text::is_python_space(c);
  return characters.text().find(text::utf8(c)) != std::string::npos;
}

std::string strip(std::string_view text, unsigned sides, const Value& characters) {
  while ((sides & kLeft) != 0 && !text.empty()) {
    const text::CodePoint c = text::code_point_at(text, 0);
    if (!strippable(c.value, characters)) break;
    text.remove_prefix(c.length);
  }
  while ((sides & kRight) != 0 && !text.empty()) {
    const text::CodePoint c = text::code_point_before(text, text.size());
    if (!strippable(c.value, characters)) break;
    text.remove_suffix(c.length);
  }
  return std::string(text);
}

std::string lower(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    text::append_lower(out, c.value);
    at += c.length;
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    text::append_upper(out, c.value);
    at += c.length;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const size_t first = text::code_point_at(text, 0).length;
  return upper(text.substr(0, first)) + lower(text.substr(first));
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
    if (letter && !inside && c >= 'a' && c <= 'z') {
      out += static_cast<char>(c - 'a' + 'A');
    } else if (letter && inside && c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
    inside = letter;
  }
  return out;
}

std::vector<std::string> split_at_space(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    if (!text::is_python_space(c.value)) {
      part += text.substr(at, c.length);
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
    at += c.length;
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

Result<Value> split(const Call& call, std::string_view text, Meter& meter) {
  const Value separator = call.argument(0, "sep");
  const Value limit = call.argument(1, "maxsplit");
  std::vector<std::string> parts;
  if (!separator.is(Value::Kind::string)) {
    if (limit.is_number())
      return meter.refuse("split() with a limit and no separator", call.offset);
    parts = split_at_space(text);
  } else {
    if (separator.text().empty()) return meter.fail("split() by an empty string", call.offset);
    int64_t left = limit.is_number() && limit.number() >= 0 ? limit.number() : INT64_MAX;
    size_t at = 0;
    while (left-- > 0) {
      const size_t found = text.find(separator.text(), at);
      if (found == std::string_view::npos) break;
      parts.emplace_back(text.substr(at, found - at));
      at = found + separator.text().size();
    }
    parts.emplace_back(text.substr(at));
  }
  Value::List list;
  for (std::string& part : parts) {
    LOOM_ASSIGN(Value value, meter.make(std::move(part), call.offset));
    list.push_back(std::move(value));
  }
  return meter.make(std::move(list), call.offset);
}

Result<Value> replace(const Call& call, std::string_view text, Meter& meter) {
  const Value from = call.argument(0, "old"), to = call.argument(1, "new");
  if (!from.is(Value::Kind::string) || !to.is(Value::Kind::string) || from.text().empty()) {
    return meter.fail("replace() needs two strings, the first not empty", call.offset);
  }
  const Value count = call.argument(2, "count");
  int64_t left = count.is_number() && count.number() >= 0 ? count.number() : INT64_MAX;
  std::string out;
  size_t at = 0;
  while (left-- > 0) {
    const size_t found = text.find(from.text(), at);
    if (found == std::string_view::npos) break;
    LOOM_TRY(meter.work(to.text().size(), call.offset));
    out += text.substr(at, found - at);
    out += to.text();
    at = found + from.text().size();
  }
  out += text.substr(at);
  return meter.make(std::move(out), call.offset);
}

Result<Value> affix(const Call& call, std::string_view text, Meter& meter) {
  const Value& part = call.arguments.empty() ? Value() : call.arguments[0];
  if (!part.is(Value::Kind::string)) {
    return meter.refuse(cat(call.name, "() of anything but one string"), call.offset);
  }
  const size_t size = part.text().size();
  if (size > text.size()) return Value::boolean(false);
  const size_t from = call.name == "startswith" ? 0 : text.size() - size;
  return Value::boolean(text.substr(from, size) == part.text());
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kFrom = "\"\\\b\f\n\r\t", kTo = "\"\\bfnrt";
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const size_t known = kFrom.find(c);
    if (known != std::string_view::npos) {
      out += '\\';
      out += kTo[known];
    } else if (byte < 0x20) {
      out += cat("\\u00", kHex[byte >> 4], kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

bool append_json(std::string& out, const Value& value) {
  bool whole = true;
  switch (value.kind()) {
    case Value::Kind::none: out += "null"; return true;
    case Value::Kind::boolean: out += value.number() != 0 ? "true" : "false"; return true;
    case Value::Kind::integer: out += std::to_string(value.number()); return true;
    case Value::Kind::string: append_json_string(out, value.text()); return true;
    case Value::Kind::list:
      out += '[';
      for (size_t i = 0; i < value.items().size(); ++i) {
        if (i > 0) out += ", ";
        whole = append_json(out, value.items()[i]) && whole;
      }
      out += ']';
      return whole;
    case Value::Kind::dict:
      out += '{';
      for (size_t i = 0; i < value.members().size(); ++i) {
        if (i > 0) out += ", ";
        append_json_string(out, value.members()[i].first);
        out += ": ";
        whole = append_json(out, value.members()[i].second) && whole;
      }
      out += '}';
      return whole;
    default: return false;
  }
}

Result<Value> text_operation(const Call& call, const std::string& text, bool& known, Meter& meter) {
  known = true;
  LOOM_TRY(meter.work(text.size(), call.offset));
  const Value characters = call.argument(0, "chars");
  if (call.name == "strip" || call.name == "trim") {
    return meter.make(strip(text, kLeft | kRight, characters), call.offset);
  }
  if (call.name == "lstrip") return meter.make(strip(text, kLeft, characters), call.offset);
  if (call.name == "rstrip") return meter.make(strip(text, kRight, characters), call.offset);
  if (call.name == "lower") return meter.make(lower(text), call.offset);
  if (call.name == "upper") return meter.make(upper(text), call.offset);
  if (call.name == "capitalize") return meter.make(capitalize(text), call.offset);
  if (call.name == "title") return meter.make(title(text), call.offset);
  if (call.name == "replace") return replace(call, text, meter);
  if (call.name == "split") return split(call, text, meter);
  if (call.name == "startswith" || call.name == "endswith") return affix(call, text, meter);
  known = false;
  return Value();
}

}  // namespace loom::core::jinja
