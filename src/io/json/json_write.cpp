// dump_json: a JsonValue as text, compact or indented; the same value always gives the same text.
// It does not format foreign text. Invariant: parse_json reads the output back as an equal value,
// except values that JSON cannot express (see json.hpp).
#include <charconv>
#include <cmath>

#include "io/bytes/utf8.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

void write_string(std::string_view text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  out += '"';
}

void write_real(double v, std::string& out) {
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), v).ptr;
  const std::string_view shortest(digits, static_cast<size_t>(end - digits));
  out += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string take() { return std::move(out_); }

  void value(const JsonValue& v, int depth) {
    switch (v.type()) {
      case JsonValue::Type::string: write_string(v.text(), out_); return;
      case JsonValue::Type::real: write_real(*v.as_double(""), out_); return;
      case JsonValue::Type::array: array(v, depth); return;
      case JsonValue::Type::object: object(v, depth); return;
      default: out_ += v.describe(); return;
    }
  }

 private:
  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * static_cast<size_t>(depth), ' ');
  }

  void array(const JsonValue& v, int depth) {
    out_ += '[';
    bool first = true;
    for (const JsonValue& element : v.elements()) {
      if (!first) out_ += ',';
      first = false;
      new_line(depth + 1);
      value(element, depth + 1);
    }
    if (!first) new_line(depth);
    out_ += ']';
  }

  void object(const JsonValue& v, int depth) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : v.members()) {
      if (!first) out_ += ',';
      first = false;
      new_line(depth + 1);
      write_string(key, out_);
      out_ += indent_ < 0 ? ":" : ": ";
      value(member, depth + 1);
    }
    if (!first) new_line(depth);
    out_ += '}';
  }

  int indent_;
  std::string out_;
};

}  // namespace

std::string dump_json(const JsonValue& value, int indent) {
  Writer writer(indent);
  writer.value(value, 0);
  return writer.take();
}

}  // namespace loom::core
