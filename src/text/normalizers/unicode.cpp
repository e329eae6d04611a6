// UTF-8 by hand; properties and cases from the tables in the tree.
#include "text/normalizers/unicode.hpp"

#include <algorithm>

#include "text/normalizers/char_set.hpp"

namespace loom::core::text {
namespace {

struct Sequence {
  size_t length = 1;       // bytes of the character, or of the maximal broken part
  bool valid = true;       // a complete character
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

namespace {

bool in_ranges(std::span<const CodeRange> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t v, const CodeRange& r) { return v < r.first; });
  return after != ranges.begin() && c <= (after - 1)->last;
}

char32_t mapped(std::span<const CaseRow> rows, char32_t c) {
  const auto after = std::upper_bound(rows.begin(), rows.end(), c,
                                      [](char32_t v, const CaseRow& r) { return v < r.first; });
  if (after == rows.begin()) return c;
  const CaseRow& row = *(after - 1);
  if (c <= row.last && (c - row.first) % row.step == 0)
    return static_cast<char32_t>(static_cast<int32_t>(c) + row.delta);
  return c;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return in_ranges(kWhiteSpace, c);
}

bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool is_numeric(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : in_ranges(kNumbers, c);
}

bool is_punctuation(char32_t c) {
  return in_ranges(kPunctuation, c);
}

bool is_nonspacing_mark(char32_t c) {
  return c >= 0x300 && in_ranges(kNonspacingMarks, c);
}

bool is_other(char32_t c) {
  return in_ranges(kOthers, c);
}

bool is_word(char32_t c) {
  static const CharSet words = CharSet::word();
  return words.contains(c) || c == 0x200C || c == 0x200D;
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // the one letter whose full lower case is two characters
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out, mapped(kLower, c));
}

void append_upper(std::string& out, char32_t c) {
  if (c == 0xDF) {  // the common letter whose full upper case is two characters
    out += "SS";
    return;
  }
  append_utf8(out, mapped(kUpper, c));
}

}  // namespace loom::core::text
