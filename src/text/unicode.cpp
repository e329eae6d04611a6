// UTF-8 by hand, properties and decompositions from utf8proc. Canonical ordering is done here with
// a stable sort per run of marks: utf8proc's own ordering is quadratic on hostile runs of combining
// marks.
#include "text/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace loom::text {
namespace {

struct Sequence {
  size_t length = 1;       // bytes of the character, or of the maximal broken part
  bool valid = true;       // a whole character
  bool truncated = false;  // broken only because the text ends
};

// Reads the sequence at bytes[at] by table 3-7 of the Unicode standard.
Sequence sequence_at(std::string_view bytes, size_t at) {
  const auto lead = static_cast<unsigned char>(bytes[at]);
  if (lead < 0x80) return {};
  size_t need = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) need = 2;
  if (lead >= 0xE0 && lead <= 0xEF) need = 3;
  if (lead >= 0xF0 && lead <= 0xF4) need = 4;
  if (need == 0) return {1, false, false};
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < need; ++i) {
    if (at + i >= bytes.size()) return {i, false, true};
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    if (byte < low || byte > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {need, true, false};
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

CodePoint code_point_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return code_point_at(text, at);
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

char32_t only_code_point(std::string_view text) {
  if (text.empty() || !is_valid_utf8(text)) return 0;
  const CodePoint c = code_point_at(text, 0);
  return c.length == text.size() ? c.value : 0;
}

bool is_valid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Sequence s = sequence_at(bytes, at);
    if (!s.valid) return false;
    at += s.length;
  }
  return true;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string rest(bytes), out;
  drain_utf8(rest, true, out);
  return out;
}

void drain_utf8(std::string& bytes, bool at_end, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Sequence s = sequence_at(bytes, at);
    if (s.truncated && !at_end) break;
    out += s.valid ? std::string_view(bytes).substr(at, s.length) : kReplacementChar;
    at += s.length;
  }
  bytes.erase(0, at);
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // the one letter whose full lower case is two characters
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void append_upper(std::string& out, char32_t c) {
  if (c == 0xDF) {  // the common letter whose full upper case is two characters
    out += "SS";
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

namespace {

using Buffer = std::vector<utf8proc_int32_t>;

int combining_class(utf8proc_int32_t c) {
  return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class;
}

// Sorts the marks from `begin` to `end` by class; those of one class keep their order.
void order_run(Buffer& buffer, size_t begin, size_t end) {
  std::vector<std::pair<int, size_t>> keys;
  for (size_t i = begin; i < end; ++i) keys.emplace_back(combining_class(buffer[i]), i);
  if (std::is_sorted(keys.begin(), keys.end())) return;
  std::sort(keys.begin(), keys.end());
  const Buffer marks(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
                     buffer.begin() + static_cast<std::ptrdiff_t>(end));
  for (size_t i = begin; i < end; ++i) buffer[i] = marks[keys[i - begin].second - begin];
}

// Puts every run of marks into canonical order.
void order_marks(Buffer& buffer) {
  for (size_t i = 0; i < buffer.size();) {
    size_t end = i;
    while (end < buffer.size() && combining_class(buffer[end]) != 0) ++end;
    if (end > i + 1) order_run(buffer, i, end);
    i = end + 1;
  }
}

bool changes_nothing(std::string_view text, NormalForm form) {
  // Below U+0300 every character is its own NFC; below U+0080 its own form of any kind.
  const bool composed = form == NormalForm::nfc;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return static_cast<unsigned char>(c) < (composed ? 0xCC : 0x80);
  });
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  if (changes_nothing(text, form)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  Buffer buffer;
  buffer.reserve(text.size());
  utf8proc_int32_t parts[32];  // the longest decomposition of one character has 18 parts
  int boundary = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.length;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, 32,
                                               static_cast<utf8proc_option_t>(options), &boundary);
    if (count < 1 || count > 32) {
      buffer.push_back(static_cast<utf8proc_int32_t>(c.value));
    } else {
      buffer.insert(buffer.end(), parts, parts + count);
    }
  }
  order_marks(buffer);
  if (composed) {
    const auto options_compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto length = utf8proc_normalize_utf32(
        buffer.data(), static_cast<utf8proc_ssize_t>(buffer.size()), options_compose);
    if (length >= 0) buffer.resize(static_cast<size_t>(length));
  }
  std::string out;
  out.reserve(text.size());
  for (const utf8proc_int32_t c : buffer) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

}  // namespace loom::text
