// Filters that make text: escape, indent, truncate, urlencode, title and the like.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// The filter, not the method: a word begins after white space, "-" or an opening bracket.
std::string title_filter(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const std::string_view one : characters(text)) {
    const char32_t c = text::code_point_at(one, 0).value;
    const bool between =
        text::is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    out += between ? std::string(one) : inside ? lower_text(one) : upper_text(one);
    inside = !between;
  }
  return out;
}

Result<Value> indent(const Call& call, const std::string& text, Meter& meter) {
  const Value width = call.argument(0, "width");
  const bool first = call.argument(1, "first").truthy(), blank = call.argument(2, "blank").truthy();
  if (width.number() > 10'000) return meter.refuse("an indent that wide", call.offset);
  const std::string pad =
      width.is(Kind::string)
          ? width.text()
          : std::string(
                static_cast<size_t>(std::max<int64_t>(width.is_integer() ? width.number() : 4, 0)),
                ' ');
  Call lines;
  lines.name = "splitlines";
  lines.offset = call.offset;
  bool known = false;
  LOOM_ASSIGN(const Value parts, text_operation(lines, text + "\n", known, meter));
  std::string out = first ? pad : "";
  for (size_t i = 0; i < parts.items().size(); ++i) {
    const std::string& line = parts.items()[i].text();
    if (i > 0) out += '\n';
    LOOM_TRY(meter.work(pad.size(), call.offset));
    if (i > 0 && (blank || !line.empty())) out += pad;
    out += line;
  }
  return meter.make(std::move(out), call.offset);
}

Result<Value> truncate(const Call& call, const std::string& text, Meter& meter) {
  const Value length = call.argument(0, "length"), end = call.argument(2, "end");
  const Value leeway = call.argument(3, "leeway");
  const std::string tail = end.is(Kind::string) ? end.text() : "...";
  const int64_t most = length.is_integer() ? length.number() : 255;
  const int64_t more = leeway.is_integer() ? leeway.number() : 5;
  const auto list = characters(text);
  const auto tail_length = static_cast<int64_t>(text::count_code_points(tail));
  if (most < tail_length || more < 0) return meter.fail("'truncate' to too little", call.offset);
  const auto size = static_cast<int64_t>(list.size());
  if (size <= most || size - most <= more) return meter.make(text, call.offset);
  std::string cut;
  for (size_t i = 0; i < static_cast<size_t>(most - tail_length); ++i) cut += list[i];
  if (!call.argument(1, "killwords").truthy()) cut = cut.substr(0, cut.rfind(' '));
  return meter.make(cut + tail, call.offset);
}

std::string url_quoted(std::string_view text, bool keep_slash) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && keep_slash);
    if (plain) {
      out += c;
    } else if (c == ' ' && !keep_slash) {
      out += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += cat('%', kHex[byte >> 4], kHex[byte & 15]);
    }
  }
  return out;
}

Result<Value> urlencode(const Call& call, Meter& meter) {
  const Value& self = call.self;
  if (!self.is(Kind::dict)) {
    LOOM_ASSIGN(const std::string text, meter.to_text(self, call.offset));
    return meter.make(url_quoted(text, true), call.offset);
  }
  std::string out;
  for (const Value::Member& member : self.members()) {
    LOOM_ASSIGN(const std::string text, meter.to_text(member.second, call.offset));
    if (!out.empty()) out += '&';
    out += url_quoted(member.first, false) + "=" + url_quoted(text, false);
  }
  return meter.make(std::move(out), call.offset);
}

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (const std::string_view one : characters(text)) {
    const char32_t c = text::code_point_at(one, 0).value;
    const bool word = text::is_word(c) || c == '_';
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return words;
}

Result<Value> of_text(const Call& call, const std::string& text, bool& known, Meter& meter) {
  const std::string_view name = call.name;
  if (name == "string") return meter.make(text, call.offset, call.self.is_safe());
  if (name == "safe") return meter.make(text, call.offset, true);
  if (name == "forceescape") return meter.make(escape_html(text), call.offset, true);
  if (name == "escape" || name == "e") {
    return meter.make(call.self.is_safe() ? text : escape_html(text), call.offset, true);
  }
  if (name == "title") return meter.make(title_filter(text), call.offset);
  if (name == "indent") return indent(call, text, meter);
  if (name == "truncate") return truncate(call, text, meter);
  if (name == "wordcount") return Value::integer(count_words(text));
  if (name == "format") {
    if (!call.named.empty()) return meter.refuse("'format' with names", call.offset);
    LOOM_ASSIGN(const Value values,
                meter.make(call.arguments, call.offset, Value::Sequence::tuple));
    return format_percent(text, values, meter, call.offset);
  }
  if (name == "center" && call.arguments.empty() && call.named.empty()) {
    Call wide = call;
    wide.arguments = {Value::integer(80)};
    return text_operation(wide, text, known, meter);
  }
  return text_operation(call, text, known, meter);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

Result<Value> text_filter(const Call& call, bool& known, Meter& meter) {
  static constexpr std::string_view kNames[] = {
      "trim",   "lower", "upper",       "string", "capitalize", "title",     "replace", "safe",
      "escape", "e",     "forceescape", "indent", "truncate",   "wordcount", "format",  "center"};
  known = true;
  if (call.name == "urlencode") return urlencode(call, meter);
  known = std::find(std::begin(kNames), std::end(kNames), call.name) != std::end(kNames);
  if (!known) return Value();
  LOOM_ASSIGN(const std::string text, meter.to_text(call.self, call.offset));
  LOOM_TRY(meter.work(4 * text.size(), call.offset));
  return of_text(call, text, known, meter);
}

}  // namespace loom::core::jinja
