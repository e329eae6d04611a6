// The byte alphabet of GPT-2: each byte is one printable character, so that a byte-level vocabulary
// is text. Printable bytes map to themselves; the other 68 follow U+0100 in ascending order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace loom::core::text {

class ByteAlphabet {
 public:
  static const ByteAlphabet& get();
  // The character of a byte, as UTF-8 of one or two bytes.
  std::string_view character(unsigned char byte) const { return characters_[byte]; }
  // The byte of a character, or -1.
  int byte_of(char32_t c) const { return c < bytes_.size() ? bytes_[c] : -1; }
  // Appends the bytes of `token`; a token with any other character is appended unchanged.
  void append_bytes(std::string_view token, std::string& out) const;

 private:
  ByteAlphabet();
  std::array<std::string, 256> characters_;
  std::array<int16_t, 0x144> bytes_;
};

}  // namespace loom::core::text
