#include "table/text_source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "io/bytes/utf8.hpp"

namespace loom::core {
namespace {

enum class Encoding : uint8_t { utf8, utf16_little, utf16_big, windows1252 };

// 0x80 to 0x9F of Windows-1252; unassigned bytes are the controls of Latin-1.
constexpr uint16_t kWindows[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                   0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                   0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether all bytes are UTF-8. A character may begin in one piece and end in the next.
Result<bool> is_utf8(ByteSource& source) {
  source.rewind();
  std::string rest;
  for (;;) {
    LOOM_ASSIGN(const auto piece, source.next());
    if (piece.empty()) return rest.empty();
    std::string joined;
    std::string_view text = text_of(piece);
    if (!rest.empty()) {
      joined = rest + std::string(text);
      text = joined;
    }
    while (!text.empty()) {
      const size_t length = utf8_length(text);
      if (length == 0) break;
      text.remove_prefix(length);
    }
    if (text.size() > 3) return false;
    rest = std::string(text);
  }
}

Result<std::string> read_whole(ByteSource& source) {
  source.rewind();
  std::string all;
  for (;;) {
    LOOM_ASSIGN(const auto piece, source.next());
    if (piece.empty()) return all;
    all += text_of(piece);
    // The text, and its UTF-8 form of up to three bytes for each of its own.
    LOOM_TRY(source.memory().check(4 * uint64_t{all.size()}, "the text", source.where()));
  }
}

Result<std::string> from_utf16(std::string_view text, bool big, const std::string& where) {
  std::string out;
  const auto unit = [&](size_t i) -> uint32_t {
    const uint32_t low = byte_at(text, big ? i + 1 : i), high = byte_at(text, big ? i : i + 1);
    return high << 8 | low;
  };
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto bad = [&] {
      return bad_file("half a character of UTF-16", where, static_cast<int64_t>(i));
    };
    if (i + 1 >= text.size()) return bad();
    uint32_t character = unit(i);
    if (i == 0 && character == 0xFEFF) continue;
    if (character >= 0xDC00 && character < 0xE000) return bad();
    if (character >= 0xD800 && character < 0xDC00) {
      if (i + 3 >= text.size() || unit(i + 2) < 0xDC00 || unit(i + 2) >= 0xE000) return bad();
      character = 0x10000 + ((character - 0xD800) << 10) + (unit(i + 2) - 0xDC00);
      i += 2;
    }
    append_utf8(character, out);
  }
  return out;
}

std::string from_windows(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = byte_at(text, i);
    append_utf8(byte >= 0x80 && byte < 0xA0 ? kWindows[byte - 0x80] : byte, out);
  }
  return out;
}

Result<Encoding> named(std::string_view name) {
  const std::string lower = to_lower_ascii(name);
  if (lower == "utf-8" || lower == "utf8") return Encoding::utf8;
  if (lower == "utf-16" || lower == "utf16" || lower == "utf-16le") return Encoding::utf16_little;
  if (lower == "utf-16be") return Encoding::utf16_big;
  if (lower == "latin-1" || lower == "latin1" || lower == "iso-8859-1" || lower == "windows-1252" ||
      lower == "cp1252")
    return Encoding::windows1252;
  return invalid(cat("unknown encoding '", printable(name),
                     "'; choose from utf-8, utf-16, utf-16be, latin-1"));
}

bool is_big(std::string_view head) {
  return head.starts_with("\xFE\xFF") || (!head.starts_with("\xFF\xFE") && head[0] == '\0');
}

}  // namespace

void append_utf8(uint32_t c, std::string& out) {
  const auto tail = [&](uint32_t shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_utf16(std::span<const std::byte> bytes) {
  const std::string_view head = text_of(bytes.first(std::min<size_t>(bytes.size(), 64)));
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return true;
  if (head.size() < 4) return false;
  size_t zeros[2] = {};
  for (size_t i = 0; i < head.size(); ++i) zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  const size_t pairs = head.size() / 2;
  return (zeros[0] == 0 && zeros[1] == pairs) || (zeros[1] == 0 && zeros[0] >= pairs);
}

Result<ByteSource> decode_text(ByteSource source, std::string_view encoding,
                               std::vector<std::string>& notes) {
  const std::string where = source.where();
  source.rewind();
  LOOM_ASSIGN(const auto head, source.next());
  Encoding form = Encoding::utf8;
  if (!encoding.empty()) {
    LOOM_ASSIGN(form, named(encoding));
  }
  if (is_utf16(head) && form != Encoding::windows1252)
    form = is_big(text_of(head)) ? Encoding::utf16_big : Encoding::utf16_little;
  if (form == Encoding::utf8) {
    const std::string_view start = text_of(head.first(std::min<size_t>(head.size(), 1024)));
    if (start.find('\0') != std::string_view::npos)
      return bad_file("is not a table: it has bytes that no text has", where);
    LOOM_ASSIGN(const bool plain, is_utf8(source));
    if (plain) {
      source.rewind();
      return source;
    }
    if (!encoding.empty()) return bad_file("is not UTF-8; try --encoding latin-1", where);
    form = Encoding::windows1252;
  }
  LOOM_ASSIGN(const std::string raw, read_whole(source));
  const bool narrow = form == Encoding::windows1252;
  if (encoding.empty())
    notes.push_back(cat(where, ": its text is ",
                        narrow ? "not UTF-8; it is read as Latin-1 (Windows-1252)" : "UTF-16"));
  const MemoryBudget memory = source.memory();
  if (narrow) return ByteSource::own(from_windows(raw), where, memory);
  LOOM_ASSIGN(std::string text, from_utf16(raw, form == Encoding::utf16_big, where));
  return ByteSource::own(std::move(text), where, memory);
}

}  // namespace loom::core
