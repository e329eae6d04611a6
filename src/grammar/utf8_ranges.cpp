#include "grammar/utf8_ranges.hpp"

namespace loom::core::grammar {
namespace {

// The first code points of each length in bytes.
constexpr char32_t kLengthLimits[] = {0x80, 0x800, 0x10000, 0x110000};

size_t encode_bytes(char32_t c, std::array<uint8_t, 4>& out) {
  if (c < 0x80) {
    out[0] = static_cast<uint8_t>(c);
    return 1;
  }
  const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  constexpr uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = length; i-- > 1;) {
    out[i] = static_cast<uint8_t>(0x80 | (c & 0x3F));
    c >>= 6;
  }
  out[0] = static_cast<uint8_t>(kLead[length] | c);
  return length;
}

// Splits a range until all bytes after the first different one cover 80..BF.
void add_range(char32_t first, char32_t last, std::vector<Utf8Range>& out) {
  if (first > last) return;
  for (const char32_t limit : kLengthLimits) {
    if (first < limit && last >= limit) {
      add_range(first, limit - 1, out);
      add_range(limit, last, out);
      return;
    }
  }
  if (first >= 0x80) {
    for (unsigned bits = 6; bits <= 18; bits += 6) {
      const char32_t low = (char32_t{1} << bits) - 1;
      if ((first & ~low) == (last & ~low)) break;
      if ((first & low) != 0) {
        add_range(first, first | low, out);
        add_range((first | low) + 1, last, out);
        return;
      }
      if ((last & low) != low) {
        add_range(first, (last & ~low) - 1, out);
        add_range(last & ~low, last, out);
        return;
      }
    }
  }
  std::array<uint8_t, 4> a{}, b{};
  Utf8Range range;
  range.length = encode_bytes(first, a);
  encode_bytes(last, b);
  for (size_t i = 0; i < range.length; ++i) range.parts[i] = {a[i], b[i]};
  out.push_back(range);
}

}  // namespace

std::vector<Utf8Range> utf8_ranges(const text::CharSet& set) {
  std::vector<Utf8Range> out;
  for (const text::CodeRange& range : set.ranges()) {
    const char32_t last = range.last < 0x10FFFF ? range.last : 0x10FFFF;
    if (range.first < 0xD800) add_range(range.first, last < 0xD7FF ? last : 0xD7FF, out);
    if (last > 0xDFFF) add_range(range.first > 0xE000 ? range.first : 0xE000, last, out);
  }
  return out;
}

}  // namespace loom::core::grammar
