#include "base/text.hpp"

#include <charconv>

namespace loom::core {
namespace {

template <class T>
void append_shortest(std::string& out, T value) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

}  // namespace

void append_piece(std::string& out, float piece) {
  append_shortest(out, piece);
}
void append_piece(std::string& out, double piece) {
  append_shortest(out, piece);
}

std::string to_lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string printable(std::string_view text, size_t max) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  // Never cut inside a UTF-8 character: step back over its continuation bytes.
  size_t end = text.size() < max ? text.size() : max;
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  // U+0080 to U+009F, C2 80 to C2 9F in UTF-8, are control characters too.
  bool second = false;
  for (size_t i = 0; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < end ? text[i + 1] : 0);
    const bool first = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (byte < 0x20 || byte == 0x7f || first || second) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += text[i];
    }
    second = first;
  }
  if (text.size() > max) out += "...";
  return out;
}

}  // namespace loom::core
