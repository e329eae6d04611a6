// tojson, as transformers defines it: Python's json.dumps with its arguments.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

struct JsonStyle {
  bool ascii = false, sorted = false, lines = false;
  std::string indent, between = ", ", after_key = ": ";
  uint64_t most = 0;  // bytes; writing stops at the limit
};

void append_escape(std::string& out, char32_t unit) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int i = 3; i >= 0; --i) out += kHex[(unit >> (4 * i)) & 15];
}

void append_json_string(std::string& out, std::string_view text, bool ascii) {
  static constexpr std::string_view kFrom = "\"\\\b\f\n\r\t", kTo = "\"\\bfnrt";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    const size_t known = c.length == 1 ? kFrom.find(text[at]) : kFrom.npos;
    if (known != kFrom.npos) {
      out += '\\';
      out += kTo[known];
    } else if (c.value < 0x20 || (ascii && c.value > 0x7E && c.value < 0x10000)) {
      append_escape(out, c.value);
    } else if (ascii && c.value >= 0x10000) {
      append_escape(out, 0xD800 + ((c.value - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((c.value - 0x10000) & 0x3FF));
    } else {
      out += text.substr(at, c.length);
    }
    at += c.length;
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(std::string& out, const JsonStyle& style) : out_(out), style_(style) {}

  // False: a value cannot be expressed in JSON, or the output is too large.
  bool write(const Value& value, int level) {
    if (out_.size() > style_.most) return false;
    switch (value.kind()) {
      case Kind::none: out_ += "null"; return true;
      case Kind::boolean: out_ += value.number() != 0 ? "true" : "false"; return true;
      case Kind::integer: out_ += std::to_string(value.number()); return true;
      case Kind::real: write_real(value.as_real()); return true;
      case Kind::string: append_json_string(out_, value.text(), style_.ascii); return true;
      case Kind::list:
        return value.sequence() <= Value::Sequence::tuple && write_list(value, level);
      case Kind::dict: return write_dict(value, level);
      default: return false;
    }
  }

 private:
  void write_real(double value) {
    const std::string text = python_real(value);
    out_ += text == "nan"    ? "NaN"
            : text == "inf"  ? "Infinity"
            : text == "-inf" ? "-Infinity"
                             : text;
  }

  void line(int level) {
    if (!style_.lines) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += style_.indent;
  }

  bool write_list(const Value& value, int level) {
    if (value.items().empty()) return out_ += "[]", true;
    out_ += '[';
    for (size_t i = 0; i < value.items().size(); ++i) {
      if (i > 0) out_ += style_.between;
      line(level + 1);
      if (!write(value.items()[i], level + 1)) return false;
    }
    line(level);
    out_ += ']';
    return true;
  }

  bool write_dict(const Value& value, int level) {
    if (value.members().empty()) return out_ += "{}", true;
    std::vector<const Value::Member*> members;
    for (const Value::Member& member : value.members()) members.push_back(&member);
    if (style_.sorted) {
      std::stable_sort(members.begin(), members.end(),
                       [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += style_.between;
      line(level + 1);
      int64_t number = 0;
      const bool integer = is_integer_key(members[i]->first, number);
      append_json_string(out_, integer ? std::to_string(number) : members[i]->first, style_.ascii);
      out_ += style_.after_key;
      if (!write(members[i]->second, level + 1)) return false;
    }
    line(level);
    out_ += '}';
    return true;
  }

  std::string& out_;
  const JsonStyle& style_;
};

Result<JsonStyle> style_of(const Call& call, Meter& meter) {
  JsonStyle style;
  style.ascii = call.argument(0, "ensure_ascii").truthy();
  style.sorted = call.argument(3, "sort_keys").truthy();
  const Value indent = call.argument(1, "indent"), separators = call.argument(2, "separators");
  if (indent.is_integer() || indent.is(Kind::string)) {
    if (indent.number() > 100 || indent.text().size() > 100)
      return meter.refuse("'tojson' with that much indent", call.offset);
    style.lines = true;
    style.between = ",";
    style.indent =
        indent.is(Kind::string)
            ? indent.text()
            : std::string(static_cast<size_t>(std::max<int64_t>(indent.number(), 0)), ' ');
  }
  if (separators.is(Kind::list)) {
    if (separators.items().size() != 2)
      return meter.fail("'separators' of 'tojson' are two strings", call.offset);
    style.between = separators.items()[0].text();
    style.after_key = separators.items()[1].text();
  }
  return style;
}

}  // namespace

Result<Value> to_json(const Call& call, Meter& meter) {
  LOOM_ASSIGN(JsonStyle style, style_of(call, meter));
  LOOM_TRY(meter.work(call.self.weight() * 32 + call.self.text().size(), call.offset));
  style.most = uint64_t{64} << 20;
  std::string json;
  if (!JsonWriter(json, style).write(call.self, 0)) {
    return meter.fail(cat("'tojson' of what has no JSON, in ", kind_name(call.self)), call.offset);
  }
  return meter.make(std::move(json), call.offset);
}

}  // namespace loom::core::jinja
