// Operations on strings that exist as filters, as methods, or as both: white space, cases, parts.
#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

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

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const size_t first = text::code_point_at(text, 0).length;
  return upper_text(text.substr(0, first)) + lower_text(text.substr(first));
}

bool is_cased(std::string_view character) {
  return lower_text(character) != character || upper_text(character) != character;
}

// str.title(): a letter after a non-letter is capitalized.
std::string title_method(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const std::string_view one : characters(text)) {
    out += inside ? lower_text(one) : upper_text(one);
    inside = is_cased(one);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (const std::string_view one : characters(text)) {
    const std::string large = upper_text(one);
    out += large == one ? lower_text(one) : large;
  }
  return out;
}

bool is_space(std::string_view character) {
  return text::is_python_space(text::code_point_at(character, 0).value);
}

// Words; with a limit the last part is the rest, from its first word to the end of the text.
std::vector<std::string> split_at_space(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  size_t at = 0;
  const auto skip = [&](bool space) {
    while (at < text.size()) {
      const size_t length = text::code_point_at(text, at).length;
      if (is_space(text.substr(at, length)) != space) break;
      at += length;
    }
  };
  for (skip(true); at < text.size(); skip(true)) {
    if (static_cast<int64_t>(parts.size()) == limit) {
      parts.emplace_back(text.substr(at));
      break;
    }
    const size_t begin = at;
    skip(false);
    parts.emplace_back(text.substr(begin, at - begin));
  }
  return parts;
}

std::vector<std::string> split_at_space_from_end(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  while (true) {
    const std::string rest = strip(text, kRight, Value());
    text = text.substr(0, rest.size());
    if (strip(text, kLeft, Value()).empty()) break;
    size_t begin = text.size();
    if (static_cast<int64_t>(parts.size()) == limit) {
      begin = 0;
    } else {
      while (begin > 0) {
        const size_t length = text::code_point_before(text, begin).length;
        if (is_space(text.substr(begin - length, length))) break;
        begin -= length;
      }
    }
    parts.emplace_back(text.substr(begin));
    text = text.substr(0, begin);
    if (static_cast<int64_t>(parts.size()) > limit) break;
  }
  return {parts.rbegin(), parts.rend()};
}

std::vector<std::string> split_at(std::string_view text, const std::string& separator,
                                  int64_t limit, bool from_end) {
  std::vector<std::string> parts;
  while (limit-- > 0) {
    const size_t found = from_end ? text.rfind(separator) : text.find(separator);
    if (found == std::string_view::npos) break;
    const size_t behind = found + separator.size();
    parts.emplace_back(from_end ? text.substr(behind) : text.substr(0, found));
    text = from_end ? text.substr(0, found) : text.substr(behind);
  }
  parts.emplace_back(text);
  if (from_end) return {parts.rbegin(), parts.rend()};
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    const size_t end = at;
    at += c.length;
    const bool breaks = (c.value >= 0x0A && c.value <= 0x0D) ||
                        (c.value >= 0x1C && c.value <= 0x1E) || c.value == 0x85 ||
                        c.value == 0x2028 || c.value == 0x2029;
    if (!breaks) continue;
    if (c.value == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

Result<Value> list_of(std::vector<std::string> parts, Meter& meter, int64_t offset) {
  Value::List list;
  for (std::string& part : parts) {
    LOOM_ASSIGN(Value value, meter.make(std::move(part), offset));
    list.push_back(std::move(value));
  }
  return meter.make(std::move(list), offset);
}

Result<Value> split(const Call& call, std::string_view text, Meter& meter) {
  const Value separator = call.argument(0, "sep");
  const Value most = call.argument(1, "maxsplit");
  const int64_t limit = most.is_integer() && most.number() >= 0 ? most.number() : INT64_MAX;
  const bool from_end = call.name == "rsplit";
  if (call.name == "splitlines") {
    return list_of(split_lines(text, call.argument(0, "keepends").truthy()), meter, call.offset);
  }
  if (!separator.is(Value::Kind::string)) {
    return list_of(from_end ? split_at_space_from_end(text, limit) : split_at_space(text, limit),
                   meter, call.offset);
  }
  if (separator.text().empty()) return meter.fail("split() by an empty string", call.offset);
  return list_of(split_at(text, separator.text(), limit, from_end), meter, call.offset);
}

// "a=b".partition("="): before, the separator, after.
Result<Value> partition(const Call& call, const std::string& text, Meter& meter) {
  const Value separator = call.argument(0, "sep");
  if (separator.text().empty()) return meter.fail("partition() needs a separator", call.offset);
  const bool from_end = call.name == "rpartition";
  const size_t found = from_end ? text.rfind(separator.text()) : text.find(separator.text());
  std::vector<std::string> parts = {text, "", ""};
  if (found != std::string::npos) {
    parts = {text.substr(0, found), separator.text(), text.substr(found + separator.text().size())};
  } else if (from_end) {
    parts = {"", "", text};
  }
  LOOM_ASSIGN(const Value list, list_of(std::move(parts), meter, call.offset));
  return Value::list(list.items(), Value::Sequence::tuple);
}

Result<Value> replace(const Call& call, std::string_view text, Meter& meter) {
  const Value from = call.argument(0, "old"), to = call.argument(1, "new");
  if (!from.is(Value::Kind::string) || !to.is(Value::Kind::string)) {
    return meter.fail("replace() needs two strings", call.offset);
  }
  const Value count = call.argument(2, "count");
  int64_t left = count.is_integer() && count.number() >= 0 ? count.number() : INT64_MAX;
  std::string out;
  if (from.text().empty()) {  // between all characters
    for (const std::string_view one : characters(text)) {
      LOOM_TRY(meter.work(to.text().size(), call.offset));
      if (left-- > 0) out += to.text();
      out += one;
    }
    if (left > 0) out += to.text();
    return meter.make(std::move(out), call.offset);
  }
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

// startswith and endswith take one string or a tuple of them.
Result<Value> affix(const Call& call, std::string_view text, Meter& meter) {
  const Value part = call.argument(0, "prefix");
  if (call.arguments.size() > 1)
    return meter.refuse(cat(call.name, "() of a part of a text"), call.offset);
  const Value::List all = part.is(Value::Kind::list) ? part.items() : Value::List{part};
  for (const Value& one : all) {
    if (!one.is(Value::Kind::string)) {
      return meter.fail(cat(call.name, "() needs a string, not ", kind_name(one)), call.offset);
    }
    const size_t size = one.text().size();
    if (size > text.size()) continue;
    const size_t from = call.name == "startswith" ? 0 : text.size() - size;
    if (text.substr(from, size) == one.text()) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Result<Value> without_affix(const Call& call, const std::string& text, Meter& meter) {
  const std::string part = call.argument(0, "prefix").text();
  const bool front = call.name == "removeprefix";
  const bool there = text.size() >= part.size() &&
                     text.compare(front ? 0 : text.size() - part.size(), part.size(), part) == 0;
  if (!there) return meter.make(text, call.offset);
  return meter.make(front ? text.substr(part.size()) : text.substr(0, text.size() - part.size()),
                    call.offset);
}

}  // namespace

std::string lower_text(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    text::append_lower(out, c.value);
    at += c.length;
  }
  return out;
}

std::string python_strip(std::string_view text) {
  return strip(text, kLeft | kRight, Value());
}

std::string python_rstrip(std::string_view text) {
  return strip(text, kRight, Value());
}

std::string upper_text(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    text::append_upper(out, c.value);
    at += c.length;
  }
  return out;
}

Result<Value> text_operation(const Call& call, const std::string& text, bool& known, Meter& meter) {
  known = true;
  LOOM_TRY(meter.work(4 * text.size(), call.offset));
  const std::string_view name = call.name;
  const Value characters = call.argument(0, "chars");
  if (name == "strip" || name == "trim") {
    return meter.make(strip(text, kLeft | kRight, characters), call.offset);
  }
  if (name == "lstrip") return meter.make(strip(text, kLeft, characters), call.offset);
  if (name == "rstrip") return meter.make(strip(text, kRight, characters), call.offset);
  if (name == "lower") return meter.make(lower_text(text), call.offset);
  if (name == "casefold") return meter.make(lower_text(upper_text(text)), call.offset);
  if (name == "upper") return meter.make(upper_text(text), call.offset);
  if (name == "capitalize") return meter.make(capitalize(text), call.offset);
  if (name == "title") return meter.make(title_method(text), call.offset);
  if (name == "swapcase") return meter.make(swap_case(text), call.offset);
  if (name == "replace") return replace(call, text, meter);
  if (name == "split" || name == "rsplit" || name == "splitlines") return split(call, text, meter);
  if (name == "partition" || name == "rpartition") return partition(call, text, meter);
  if (name == "startswith" || name == "endswith") return affix(call, text, meter);
  if (name == "removeprefix" || name == "removesuffix") return without_affix(call, text, meter);
  return text_search(call, text, known, meter);
}

}  // namespace loom::core::jinja
