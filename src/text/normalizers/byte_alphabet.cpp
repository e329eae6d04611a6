// Builds the table once; reading it needs no lock.
#include "text/normalizers/byte_alphabet.hpp"

#include "text/normalizers/unicode.hpp"

namespace loom::core::text {

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const char32_t c = printable ? static_cast<char32_t>(byte) : next++;
    characters_[static_cast<size_t>(byte)] = utf8(c);
    bytes_[c] = static_cast<int16_t>(byte);
  }
}

const ByteAlphabet& ByteAlphabet::get() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

void ByteAlphabet::append_bytes(std::string_view token, std::string& out) const {
  const size_t before = out.size();
  for (size_t at = 0; at < token.size();) {
    const CodePoint c = code_point_at(token, at);
    const int byte = byte_of(c.value);
    if (byte < 0) {
      out.resize(before);
      out += token;
      return;
    }
    out += static_cast<char>(byte);
    at += c.length;
  }
}

}  // namespace loom::core::text
